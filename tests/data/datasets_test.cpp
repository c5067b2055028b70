#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "data/dataset.h"
#include "data/fetch.h"
#include "data/idx.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string complaint(const std::string& spec) {
  return error_text([&] { open_dataset(spec, Split::train, 0); });
}

TEST(OpenDataset, AnUnknownNameSuggestsTheNearest) {
  EXPECT_THAT(complaint("mnits"), AllOf(HasSubstr("data set 'mnits' is unknown"),
                                        HasSubstr("did you mean 'mnist'?"), HasSubstr("npy:")));
  EXPECT_THAT(complaint(""), HasSubstr("data set '' is unknown"));
}

TEST(OpenDataset, FileSpecsNameTwoOrFourFiles) {
  for (const char* spec : {"npy:", "npy:x", "npy:x,", "npy:x,y,z", "idx:,,,", "idx:a,b,c,d,e"})
    EXPECT_THAT(complaint(spec), HasSubstr(std::string("data set '") + spec + "': write ")) << spec;
}

TEST(OpenDataset, AMissingFileIsNamed) {
  EXPECT_THAT(complaint("npy:/nowhere/x.npy,/nowhere/y.npy"), HasSubstr("/nowhere/x.npy"));
}

TEST(OpenDataset, MnistNotYetFetchedTellsHow) {
  const TemporaryFolder cache;
  ::setenv("REGATTA_CACHE", cache.path().c_str(), 1);
  EXPECT_THAT(complaint("mnist"), HasSubstr("run 'regatta data get mnist'"));
  EXPECT_THAT(complaint("fashion-mnist"), HasSubstr("run 'regatta data get fashion-mnist'"));
  ::unsetenv("REGATTA_CACHE");
}

TEST(OpenDataset, MnistInTheCacheComesNormalised) {
  const TemporaryFolder cache;
  ::setenv("REGATTA_CACHE", cache.path().c_str(), 1);
  std::filesystem::create_directories(dataset_folder("mnist"));
  for (std::size_t i = 0; i < 4; i += 2) {
    const std::int64_t count = i == 0 ? 2 : 1;
    const auto n = static_cast<std::size_t>(count);
    write_idx(dataset_folder("mnist") / idx_file_names[i],
              {Dtype::u8, {count, 28, 28}, std::string(n * 784, 'x')});
    write_idx(dataset_folder("mnist") / idx_file_names[i + 1],
              {Dtype::u8, {count}, std::string(n, '\x09')});
  }
  const auto train = open_dataset("mnist", Split::train, 0);
  EXPECT_EQ(train->info().count, 2);
  EXPECT_EQ(train->info().classes, 10);
  EXPECT_THAT(train->info().mean, ElementsAre(0.1307f));
  EXPECT_THAT(train->info().deviation, ElementsAre(0.3081f));
  EXPECT_EQ(open_dataset("mnist", Split::test, 0)->info().count, 1);
  ::unsetenv("REGATTA_CACHE");
}

TEST(OpenDataset, SyntheticNamesHaveTheSizesOfTheirModels) {
  const auto info = [](const char* spec, Split split) {
    return open_dataset(spec, split, 0)->info();
  };
  EXPECT_EQ(info("cifar10-synth", Split::train).sample, (Shape{3, 32, 32}));
  EXPECT_EQ(info("cifar10-synth", Split::train).count, 50'000);
  EXPECT_EQ(info("cifar10-synth", Split::test).count, 10'000);
  EXPECT_EQ(info("imagenet-synth", Split::train).count, 1'281'167);
  EXPECT_EQ(info("imagenet-synth", Split::test).count, 50'000);
  EXPECT_EQ(info("imagenet-synth", Split::test).classes, 1000);
  EXPECT_EQ(info("digits-synth", Split::train).sample, (Shape{1, 28, 28}));
  EXPECT_EQ(info("synth:1x8x8/3@7", Split::test).count, 1);
}

TEST(EpochOrder, WithoutShufflingCountsUp) {
  EXPECT_THAT(epoch_order(4, 1, 0, false), ElementsAre(0, 1, 2, 3));
}

TEST(EpochOrder, VisitsEverySampleOnce) {
  std::vector<std::int64_t> order = epoch_order(1000, 1, 0, true);
  std::ranges::sort(order);
  EXPECT_EQ(order, epoch_order(1000, 1, 0, false));
  EXPECT_TRUE(epoch_order(0, 1, 0, true).empty());
}

TEST(Specs, BecomeAbsoluteWhereTheyHoldPaths) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(absolute_spec("folder:a/../b/"), "folder:" + here + "/b");
  EXPECT_EQ(absolute_spec("shards:/x"), "shards:/x");
  EXPECT_EQ(absolute_spec("npy:x.npy,/y.npy@nhwc"), "npy:" + here + "/x.npy,/y.npy@nhwc");
  EXPECT_EQ(absolute_spec("tfrecord:t-*,v-*"), "tfrecord:" + here + "/t-*," + here + "/v-*");
  for (const char* spec : {"mnist", "synth:3x8x8/10@50"}) EXPECT_EQ(absolute_spec(spec), spec);
}

TEST(EpochOrder, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(epoch_order(100, 1, 2, true), epoch_order(100, 1, 2, true));
  EXPECT_NE(epoch_order(100, 1, 2, true), epoch_order(100, 1, 3, true));
  EXPECT_NE(epoch_order(100, 1, 2, true), epoch_order(100, 2, 2, true));
}

TEST(EpochOrder, FavoursNoPermutation) {
  std::map<std::vector<std::int64_t>, int> seen;
  constexpr int epochs = 24'000;
  for (int epoch = 0; epoch < epochs; ++epoch) ++seen[epoch_order(4, 9, epoch, true)];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, times] : seen) EXPECT_NEAR(times, epochs / 24, 150);
}

}  // namespace
}  // namespace regatta
