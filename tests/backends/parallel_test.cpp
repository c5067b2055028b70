// How a worker's team shares loops.
#include "backends/cpu/parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace regatta::cpu {
namespace {

// On a thread of its own, since a team belongs to a thread.
template <class Body>
void with_team(int threads, const Body& body) {
  std::thread worker([&] {
    set_team_size(threads);
    body();
  });
  worker.join();
}

constexpr std::int64_t much = 1 << 20;  // elements of an item: worth a team

TEST(ParallelFor, CoversEveryItemOnce) {
  for (const int team : {1, 2, 3, 4})
    for (const std::int64_t count : {0, 1, 2, 5, 64})
      with_team(team, [&] {
        std::vector<int> visits(static_cast<std::size_t>(count));
        parallel_for(count, much, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << team << " threads";
      });
}

TEST(ParallelFor, AloneRunsInOnePieceOnTheCallingThread) {
  const auto caller = std::this_thread::get_id();
  int pieces = 0;
  parallel_for(100, much, [&](std::int64_t, std::int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++pieces;
  });
  EXPECT_EQ(pieces, 1);
}

TEST(ParallelFor, LeavesShortLoopsToOneThread) {
  with_team(4, [] {
    EXPECT_EQ(parts_of(8, 16), 1);
    EXPECT_EQ(parts_of(8, much), 4);
    EXPECT_EQ(parts_of(3, much), 3);
  });
}

TEST(ParallelFor, InsideAPartIsThatPartsAlone) {
  with_team(3, [] {
    std::vector<int> inner(3);
    parallel_parts(3,
                   [&](int part) { inner[static_cast<std::size_t>(part)] = parts_of(100, much); });
    EXPECT_EQ(inner, std::vector<int>({1, 1, 1}));
    EXPECT_EQ(team_size(), 3);
  });
}

TEST(ParallelFor, ThrowsWhatTheFirstPartThrew) {
  with_team(4, [] {
    const auto run = [] {
      parallel_parts(4, [](int part) {
        if (part > 0) throw std::runtime_error(std::to_string(part));
      });
    };
    try {
      run();
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "1");
    }
    EXPECT_EQ(team_size(), 4);
  });
}

}  // namespace
}  // namespace regatta::cpu
