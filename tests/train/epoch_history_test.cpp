#include "train/epoch_history.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace regatta {
namespace {

EpochRecord made_up_epoch(std::int64_t epoch, double loss) {
  EpochRecord made;
  made.epoch = epoch;
  made.train_loss = 1;
  made.test_loss = loss;
  made.duration = Seconds(2);
  made.loader_share = epoch % 2 == 0 ? 0.5 : 0.0;
  return made;
}

TEST(EpochHistory, KeepsEveryEpochWhileThereAreFew) {
  EpochHistory history(10);
  for (std::int64_t epoch = 1; epoch < 10; ++epoch) history.add(made_up_epoch(epoch, 1));
  EXPECT_EQ(history.epochs().size(), 9u);
}

TEST(EpochHistory, OfVeryManyEpochsHasFewWithTheExtremesOfTheLoss) {
  EpochHistory history(100);
  constexpr std::int64_t all = 100'000;
  for (std::int64_t epoch = 1; epoch <= all; ++epoch)
    history.add(made_up_epoch(epoch, epoch == 4321 ? 0.1 : epoch == 54321 ? 9.0 : 1.0));
  EXPECT_LE(history.epochs().size(), 100u);
  EXPECT_GE(history.epochs().size(), 20u);
  EXPECT_EQ(history.epochs().back().epoch, all);
  for (const std::int64_t extreme : {4321, 54321})
    EXPECT_EQ(std::ranges::count(history.epochs(), extreme, &EpochRecord::epoch), 1);
  EXPECT_TRUE(std::ranges::is_sorted(history.epochs(), {}, &EpochRecord::epoch));
  // The share over all epochs, also those that were dropped.
  EXPECT_DOUBLE_EQ(history.loader_share(), 0.25);
}

}  // namespace
}  // namespace regatta
