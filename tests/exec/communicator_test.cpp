// Every way to add up a bucket over ranks, between objects of one process.
#include "exec/communicator.h"

#include <gtest/gtest.h>

#include <future>
#include <numeric>

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

// What the ranks have after the exchange of these.
std::vector<std::vector<float>> exchanged(NodeUpdate update,
                                          std::vector<std::vector<float>> gradients) {
  const int ranks = static_cast<int>(gradients.size());
  const auto transports = in_process_ranks(ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<std::promise<void>> arrived(gradients.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const RankPlace place = place_of(update, rank, ranks);
    communicators.push_back(std::make_unique<Communicator>(
        transports[static_cast<std::size_t>(rank)], names_of(ranks), most_messages(place), 1));
    std::vector<float>& own = gradients[static_cast<std::size_t>(rank)];
    Travel travel;
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
  return gradients;
}

TEST(ExchangeRounds, EveryWayGivesEveryRankTheSameSum) {
  for (const NodeUpdate update :
       {NodeUpdate::ring, NodeUpdate::tree, NodeUpdate::hierarchical, NodeUpdate::server_cpu,
        NodeUpdate::server_gpu, NodeUpdate::replicated})
    for (const int ranks : {2, 3, 4, 7})
      for (const std::size_t elements : {1u, 5u, 1000u}) {
        std::vector<std::vector<float>> gradients(static_cast<std::size_t>(ranks));
        std::vector<double> sums(elements);
        for (std::size_t r = 0; r < gradients.size(); ++r)
          for (std::size_t i = 0; i < elements; ++i) {
            gradients[r].push_back(1.0f / static_cast<float>(1 + i + 7 * r));
            sums[i] += gradients[r].back();
          }
        const auto results = exchanged(update, gradients);
        for (const std::vector<float>& result : results)
          ASSERT_EQ(result, results.front())
              << node_update_name(update) << ", " << ranks << " ranks: bits differ";
        for (std::size_t i = 0; i < elements; ++i)
          ASSERT_NEAR(results.front()[i], sums[i], 1e-6 * sums[i])
              << node_update_name(update) << ", " << ranks << " ranks, element " << i;
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

}  // namespace
}  // namespace regatta
