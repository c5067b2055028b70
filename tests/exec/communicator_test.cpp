// Every way to add up a bucket over ranks, between objects of one process.
#include "exec/communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>

#include "base/error.h"
#include "exec/executor.h"
#include "transport/in_process.h"

namespace regatta {
namespace {

RankPlace place_of(NodeUpdate update, int rank, int ranks) {
  RankPlace place;
  place.rank = rank;
  place.ranks = ranks;
  place.update = update;
  for (int r = 0; r < ranks; ++r) place.sites.push_back(r < (ranks + 1) / 2 ? 0 : 1);
  return place;
}

std::vector<std::string> names_of(int ranks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back("rank " + std::to_string(rank));
  return names;
}

// A transport that counts the bytes of its rank's gradients.
class CountingTransport : public Transport {
 public:
  CountingTransport(std::shared_ptr<Transport> by, std::atomic<std::size_t>& bytes)
      : by_(std::move(by)), bytes_(bytes) {}
  int rank() const override { return by_->rank(); }
  int size() const override { return by_->size(); }
  int largest_tag() const override { return by_->largest_tag(); }
  std::unique_ptr<Message> send(int to, int tag, std::span<const std::byte> data) override {
    if (tag >= first_free_tag) bytes_ += data.size();
    return by_->send(to, tag, data);
  }
  std::unique_ptr<Message> receive(int from, int tag, std::span<std::byte> data) override {
    return by_->receive(from, tag, data);
  }
  std::unique_ptr<Message> sum(int channel, std::span<float> values) override {
    return by_->sum(channel, values);
  }
  void open_channels(int count) override { by_->open_channels(count); }
  void leave(std::shared_ptr<const void> memory) override { by_->leave(std::move(memory)); }
  void end_all(int code) override { by_->end_all(code); }
  void end_within(std::chrono::milliseconds patience, int code) override {
    by_->end_within(patience, code);
  }

 private:
  std::shared_ptr<Transport> by_;
  std::atomic<std::size_t>& bytes_;
};

// What the ranks have after the exchange of these. `bytes`: that they sent.
std::vector<std::vector<float>> exchanged(NodeUpdate update,
                                          std::vector<std::vector<float>> gradients,
                                          bool as_bf16 = false, std::size_t* bytes = nullptr) {
  const int ranks = static_cast<int>(gradients.size());
  std::vector<std::shared_ptr<Transport>> transports = in_process_ranks(ranks);
  std::atomic<std::size_t> sent = 0;
  for (std::shared_ptr<Transport>& each : transports)
    each = std::make_shared<CountingTransport>(each, sent);
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<std::promise<void>> arrived(gradients.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const RankPlace place = place_of(update, rank, ranks);
    communicators.push_back(std::make_unique<Communicator>(
        transports[static_cast<std::size_t>(rank)], names_of(ranks), most_messages(place), 1));
    std::vector<float>& own = gradients[static_cast<std::size_t>(rank)];
    Travel travel;
    travel.as_bf16 = as_bf16;
    for (const ExchangeRound& round : exchange_rounds(place, own.size())) {
      ByteRound& made = travel.rounds.emplace_back();
      for (const Transfer& each : round) {
        EXPECT_LT(each.message, most_messages(place));
        made.push_back({each.kind, each.peer, each.message,
                        reinterpret_cast<std::byte*>(own.data() + each.first),
                        each.count * sizeof(float)});
      }
    }
    travel.done = [&, rank](const std::exception_ptr& failure) {
      EXPECT_EQ(failure, nullptr);
      arrived[static_cast<std::size_t>(rank)].set_value();
    };
    communicators.back()->start(std::move(travel));
  }
  for (std::promise<void>& each : arrived) each.get_future().wait();
  if (bytes) *bytes = sent;
  return gradients;
}

constexpr NodeUpdate sums_anywhere[]{NodeUpdate::ring,         NodeUpdate::tree,
                                     NodeUpdate::hierarchical, NodeUpdate::server_cpu,
                                     NodeUpdate::server_gpu,   NodeUpdate::replicated};

// Positive numbers that all differ, of each rank.
std::vector<std::vector<float>> fractions(int ranks, std::size_t elements) {
  std::vector<std::vector<float>> gradients(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < gradients.size(); ++r)
    for (std::size_t i = 0; i < elements; ++i)
      gradients[r].push_back(1.0f / static_cast<float>(1 + i + 7 * r));
  return gradients;
}

std::vector<double> sums_of(const std::vector<std::vector<float>>& gradients) {
  std::vector<double> sums(gradients.front().size());
  for (const std::vector<float>& each : gradients)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += each[i];
  return sums;
}

TEST(ExchangeRounds, EveryWayGivesEveryRankTheSameSum) {
  for (const NodeUpdate update : sums_anywhere)
    for (const int ranks : {2, 3, 4, 7})
      for (const std::size_t elements : {1u, 5u, 1000u}) {
        const auto gradients = fractions(ranks, elements);
        const std::vector<double> sums = sums_of(gradients);
        const auto results = exchanged(update, gradients);
        for (const std::vector<float>& result : results)
          ASSERT_EQ(result, results.front())
              << node_update_name(update) << ", " << ranks << " ranks: bits differ";
        for (std::size_t i = 0; i < elements; ++i)
          ASSERT_NEAR(results.front()[i], sums[i], 1e-6 * sums[i])
              << node_update_name(update) << ", " << ranks << " ranks, element " << i;
      }
}

// Rounding to bf16 moves a number by at most 2^-8 of it, and no term is rounded more often than
// there are ranks.
TEST(ExchangeRounds, InBf16EveryWayGivesEveryRankTheSameBitsOfANearbySum) {
  for (const NodeUpdate update : sums_anywhere)
    for (const int ranks : {2, 3, 4, 7})
      for (const std::size_t elements : {1u, 5u, 1000u}) {
        const auto gradients = fractions(ranks, elements);
        const std::vector<double> sums = sums_of(gradients);
        const auto results = exchanged(update, gradients, /*as_bf16=*/true);
        for (const std::vector<float>& result : results)
          ASSERT_EQ(result, results.front())
              << node_update_name(update) << ", " << ranks << " ranks: bits differ";
        const double bound = 1.02 * ranks / 256;
        double moved = 0;
        for (std::size_t i = 0; i < elements; ++i) {
          ASSERT_NEAR(results.front()[i], sums[i], bound * sums[i])
              << node_update_name(update) << ", " << ranks << " ranks, element " << i;
          moved = std::max(moved, std::abs(results.front()[i] - sums[i]) / sums[i]);
        }
        if (elements > 100) {
          EXPECT_GT(moved, 1e-4) << node_update_name(update) << ": nothing was rounded";
        }
      }
}

TEST(ExchangeRounds, InBf16HalfTheBytesTravel) {
  for (const NodeUpdate update : sums_anywhere)
    for (const int ranks : {2, 3, 4}) {
      std::size_t full = 0, half = 0;
      exchanged(update, fractions(ranks, 1000), false, &full);
      exchanged(update, fractions(ranks, 1000), true, &half);
      EXPECT_GT(half, 0u);
      EXPECT_EQ(2 * half, full) << node_update_name(update) << ", " << ranks << " ranks";
    }
}

// Of two ranks each adds what the other sent to what it sent itself. A bf16 has 7 bits after the
// point, so each first term lies in the middle between two.
TEST(ExchangeRounds, WhatIsSentIsRoundedToNearestEvenAndStaysWhatItIs) {
  const float step = 1.0f / 128, none = std::numeric_limits<float>::quiet_NaN();
  const auto results =
      exchanged(NodeUpdate::replicated,
                {{1 + step / 2, 1 + 3 * step / 2, 1 + step, -(1 + step / 2) * 1.0001f, none},
                 {0, 0, 0, 0, 1}},
                /*as_bf16=*/true);
  for (const std::vector<float>& each : results) {
    EXPECT_EQ(each[0], 1);
    EXPECT_EQ(each[1], 1 + 2 * step);
    EXPECT_EQ(each[2], 1 + step);
    EXPECT_EQ(each[3], -(1 + step));
    EXPECT_TRUE(std::isnan(each[4]));
  }
}

TEST(ExchangeRounds, AChainHandsTheLastRanksTotalToAll) {
  const auto results = exchanged(NodeUpdate::chain, {{1}, {3}});  // 3: with the first's added
  // The first rank's message to the second is taken by running_sum_rounds.
  EXPECT_EQ(results[0], std::vector<float>{3});
  const auto rounds = running_sum_rounds(place_of(NodeUpdate::chain, 1, 2), 1);
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_EQ(rounds[0][0].peer, 0);
  EXPECT_TRUE(running_sum_rounds(place_of(NodeUpdate::chain, 0, 2), 1).empty());
}

TEST(Communicator, ARankThatGivesUpIsNamedToThoseWhoWait) {
  const auto transports = in_process_ranks(2);
  Communicator first(transports[0], names_of(2), 4, 1), second(transports[1], names_of(2), 4, 1);
  std::promise<std::string> told;
  std::vector<std::byte> room(8);
  Travel travel;
  travel.rounds = {{{Transfer::Kind::receive, 1, 0, room.data(), room.size()}}};
  travel.done = [&](const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const RankFailed& error) {
      told.set_value(error.what());
    }
  };
  first.start(std::move(travel));
  second.give_up("its disk is full");
  EXPECT_EQ(told.get_future().get(), "rank 1 failed: its disk is full");
}

// Gradients that it sends never arrive, and it keeps what it is left.
class StuckTransport : public CountingTransport {
 public:
  using CountingTransport::CountingTransport;
  std::unique_ptr<Message> send(int to, int tag, std::span<const std::byte> data) override {
    if (tag < first_free_tag) return CountingTransport::send(to, tag, data);
    return std::make_unique<Stuck>();
  }
  void leave(std::shared_ptr<const void> memory) override { left_.push_back(std::move(memory)); }

 private:
  class Stuck : public Message {
   public:
    bool done() override { return false; }
  };
  std::vector<std::shared_ptr<const void>> left_;
};

// MPI may still read what it was to send.
TEST(Communicator, MemoryOfMessagesThatAFailureCutShortIsLeftToTheTransport) {
  const auto transports = in_process_ranks(2);
  std::atomic<std::size_t> bytes = 0;
  const auto stuck = std::make_shared<StuckTransport>(transports[0], bytes);
  auto buffer = std::make_shared<std::vector<std::byte>>(8);
  const std::weak_ptr<std::vector<std::byte>> watched = buffer;
  {
    Communicator first(stuck, names_of(2), 4, 1), second(transports[1], names_of(2), 4, 1);
    std::promise<void> failed;
    Travel travel;
    travel.rounds = {{{Transfer::Kind::send, 1, 0, buffer->data(), buffer->size()}}};
    travel.done = [&failed, buffer = std::move(buffer)](const std::exception_ptr& failure) {
      EXPECT_NE(failure, nullptr);
      failed.set_value();
    };
    first.start(std::move(travel));
    second.give_up("its disk is full");
    failed.get_future().wait();
  }
  EXPECT_FALSE(watched.expired());
}

}  // namespace
}  // namespace regatta
