// Presence: notices ranks that fall silent outside of training.
#include "transport/presence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "transport/in_process.h"

namespace regatta {
namespace {

using std::chrono::milliseconds;

constexpr PresenceTimes quick{milliseconds(5), milliseconds(100)};

TEST(Presence, ARankThatSaysNothingIsNamed) {
  const auto ranks = in_process_ranks(3);
  std::promise<int> silent;
  const Presence first(
      ranks[0], [&](int rank) { silent.set_value(rank); }, quick);
  // Rank 2 has no Presence, so it is silent; rank 1 does not report it here.
  const Presence second(
      ranks[1], [](int) {}, quick);
  EXPECT_EQ(silent.get_future().get(), 2);
}

TEST(Presence, NobodyWaitsForARankThatSaidGoodbye) {
  const auto ranks = in_process_ranks(2);
  std::promise<int> silent;
  std::future<int> named = silent.get_future();
  const Presence first(
      ranks[0], [&](int rank) { silent.set_value(rank); }, quick);
  {
    const Presence second(
        ranks[1], [](int) {}, quick);
  }
  EXPECT_EQ(named.wait_for(3 * quick.silence), std::future_status::timeout);
}

TEST(Presence, RanksThatAreThereAreNotSilent) {
  const auto ranks = in_process_ranks(2);
  std::promise<int> silent;
  std::future<int> named = silent.get_future();
  const auto tell = [&](int rank) { silent.set_value(rank); };
  // A limit long enough that a busy machine lets both threads run within it.
  const PresenceTimes patient{milliseconds(5), milliseconds(2000)};
  const Presence first(ranks[0], tell, patient), second(
                                                     ranks[1], [](int) {}, patient);
  EXPECT_EQ(named.wait_for(milliseconds(2500)), std::future_status::timeout);
}

TEST(Presence, APartingRankWaitsForTheOthersToPart) {
  const auto ranks = in_process_ranks(2);
  // A limit long enough that a busy machine lets both threads run within it.
  const PresenceTimes patient{milliseconds(5), milliseconds(1000)};
  Presence first(
      ranks[0], [](int) {}, patient),
      second(
          ranks[1], [](int) {}, patient);
  std::atomic<bool> second_parts = false;
  std::future<bool> waited = std::async(std::launch::async, [&] {
    first.part();
    return second_parts.load();
  });
  // Longer than the limit: the second is there, only not ready to part.
  EXPECT_EQ(waited.wait_for(milliseconds(1500)), std::future_status::timeout);
  second_parts = true;
  second.part();
  EXPECT_TRUE(waited.get());
  EXPECT_FALSE(first.lost(1));
}

TEST(Presence, APartingRankLeavesOneThatIsSilent) {
  const auto ranks = in_process_ranks(3);
  Presence first(
      ranks[0], [](int) {}, quick),
      second(
          ranks[1], [](int) {}, quick);
  // Rank 2 has no Presence.
  std::future<void> other = std::async(std::launch::async, [&] { second.part(); });
  first.part();
  other.get();
  EXPECT_TRUE(first.lost(2));
  EXPECT_FALSE(first.lost(1));
}

}  // namespace
}  // namespace regatta
