#include "data/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include "base/files.h"
#include "base/random.h"
#include "data/augment_sample.h"
#include "data/prepare.h"
#include "support/error_text.h"
#include "support/images.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Batch {
  std::vector<std::byte> samples;
  std::vector<std::int32_t> labels;
  bool operator==(const Batch&) const = default;
};

// An epoch's batches, one after another.
Batch epoch_of(const Dataset& data, std::int64_t epoch, bool shuffle) {
  std::vector<Visit> visits;
  for (const std::int64_t index : data.order(1, epoch, shuffle))
    visits.push_back({index, random_bits(1, 2, visits.size())});
  Batch batch{std::vector<std::byte>(visits.size() * sample_bytes(data.info())),
              std::vector<std::int32_t>(visits.size())};
  data.read(visits, batch.samples.data(), batch.labels.data());
  return batch;
}

std::string contents(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::string all;
  for (const fs::path& file : files) all += file.filename().string() + read_file(file);
  return all;
}

struct Prepared4 {
  TemporaryFolder folder;
  std::string source = "folder:" + (folder.path() / "images").string();
  fs::path out = folder.path() / "shards";
  PrepareOptions options;

  explicit Prepared4(int height = 24, int width = 24) {
    write_image_folder(folder.path() / "images", 3, 4, height, width);
    options.spec = source;
    options.out = out;
    options.file_bytes = std::int64_t{3} * 24 * 24 * 5;  // 5 samples a shard
    options.workers = 2;
  }
  std::string spec() const { return "shards:" + out.string(); }
};

TEST(Shards, GiveTheBatchesOfTheFolderTheyWereMadeOf) {
  const Prepared4 set;
  const Prepared made = prepare_data(set.options);
  EXPECT_EQ(made.files, 3 + 3);  // 12 samples in each split, 5 a shard
  EXPECT_EQ(made.samples, 24);
  for (const Split split : {Split::train, Split::test}) {
    const auto folder = open_dataset(set.source, split, 1);
    const auto shards = open_dataset(set.spec(), split, 1);
    EXPECT_EQ(shards->info().count, folder->info().count);
    EXPECT_EQ(shards->info().class_names, folder->info().class_names);
    EXPECT_EQ(shards->info().mean, folder->info().mean);
    EXPECT_FALSE(shards->info().splits_coincide);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch)
      EXPECT_EQ(epoch_of(*shards, epoch, split == Split::train),
                epoch_of(*folder, epoch, split == Split::train));
  }
}

TEST(Shards, GiveTheSameAugmentedBatches) {
  const Prepared4 set;
  prepare_data(set.options);
  const DatasetOptions options{.augmentation = parse_augmentation("crop:3,flip,jitter:0.3")};
  EXPECT_EQ(epoch_of(*open_dataset(set.spec(), options), 0, true),
            epoch_of(*open_dataset(set.source, options), 0, true));
}

TEST(Shards, ALargerStoreServesASmallerInput) {
  Prepared4 set(40, 50);
  set.options.input = Shape{3, 32, 32};
  set.options.resize_to = 32;
  prepare_data(set.options);
  // 28 * 256/224 = 32: evaluation of the images themselves cuts the same middle out.
  const DatasetOptions options{.split = Split::test, .input = Shape{3, 28, 28}};
  EXPECT_EQ(epoch_of(*open_dataset(set.spec(), options), 0, false),
            epoch_of(*open_dataset(set.source, options), 0, false));
}

TEST(Shards, TheNumberOfWorkersHasNoSay) {
  Prepared4 set;
  prepare_data(set.options);
  const std::string first = contents(set.out);
  fs::remove_all(set.out);
  set.options.workers = 1;
  prepare_data(set.options);
  EXPECT_EQ(contents(set.out), first);
}

TEST(Shards, AnInterruptedPreparationIsFinished) {
  const Prepared4 set;
  prepare_data(set.options);
  const std::string whole = contents(set.out);
  // As a kill may leave it: no index, a missing shard, a half written one, a spoiled one.
  fs::remove(set.out / "index.json");
  fs::remove(set.out / "train-00001.shard");
  std::ofstream(set.out / "train-00001.shard.part-77") << "half";
  std::string spoiled = read_file(set.out / "test-00000.shard");
  spoiled[spoiled.size() - 10] ^= 1;
  write_file(set.out / "test-00000.shard", spoiled);
  EXPECT_THAT(error_text([&] { open_dataset(set.spec(), Split::train, 0); }),
              HasSubstr("has no index.json"));
  const Prepared again = prepare_data(set.options);
  EXPECT_EQ(again.files, 6);
  EXPECT_EQ(again.kept, 4);
  EXPECT_EQ(contents(set.out), whole);
}

TEST(Shards, AnotherPreparationIsNotOverwritten) {
  Prepared4 set;
  prepare_data(set.options);
  set.options.input = Shape{3, 16, 16};
  EXPECT_THAT(error_text([&] { prepare_data(set.options); }), HasSubstr("choose another --out"));
}

TEST(Shards, ASpoiledSampleIsSkippedAndNamed) {
  const Prepared4 set;
  prepare_data(set.options);
  std::string spoiled = read_file(set.out / "test-00000.shard");
  spoiled[spoiled.size() - 10] ^= 1;  // the last of five, in order
  write_file(set.out / "test-00000.shard", spoiled);
  const auto data = open_dataset(set.spec(), Split::test, 0);
  epoch_of(*data, 0, false);
  EXPECT_EQ(data->skipped().count, 1);
  EXPECT_THAT(data->skipped().first.at(0), HasSubstr("sample 4"));
  const auto strict =
      open_dataset(set.spec(), DatasetOptions{.split = Split::test, .strict = true});
  EXPECT_THAT(error_text([&] { epoch_of(*strict, 0, false); }), HasSubstr("checksum"));
}

TEST(Shards, LiesAreNamed) {
  const Prepared4 set;
  prepare_data(set.options);
  const fs::path shard = set.out / "train-00000.shard";
  const std::string whole = read_file(shard);
  const auto complaint = [&](const std::string& bytes) {
    write_file(shard, bytes);
    return error_text([&] { open_dataset(set.spec(), Split::train, 0); });
  };
  EXPECT_THAT(complaint(""), HasSubstr("only 0 bytes"));
  EXPECT_THAT(complaint(whole.substr(0, whole.size() - 1)),
              HasSubstr("train-00000.shard' is not a usable shard"));
  std::string damaged = whole;
  damaged[44] ^= 1;  // a size in the header
  EXPECT_THAT(complaint(damaged), HasSubstr("header is damaged"));
  damaged = whole;
  damaged[90] ^= 1;  // the table
  EXPECT_THAT(complaint(damaged), HasSubstr("table is damaged"));
  EXPECT_THAT(complaint(std::string(whole.size(), 'x')), HasSubstr("does not begin as one"));
  EXPECT_THAT(complaint(read_file(set.out / "train-00001.shard")), HasSubstr("again or in excess"));
  write_file(set.out / "index.json", "{}");
  EXPECT_THAT(complaint(whole), HasSubstr("does not tell shards"));
}

TEST(Shards, FloatsAreNotTaken) {
  const TemporaryFolder folder;
  PrepareOptions options;
  options.spec = "synth:3x8x8/2@20";
  options.out = folder.path() / "out";
  options.input = Shape{3, 4, 4};
  EXPECT_THAT(error_text([&] { prepare_data(options); }), HasSubstr("not resized"));
}

TEST(BlockOrder, IsAPermutationThatStaysInItsWindow) {
  const std::vector<std::int64_t> order = block_order(1003, 10, 4, 1, 0);
  std::vector<std::int64_t> sorted = order, all(1003);
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(order, block_order(1003, 10, 4, 1, 1));
  EXPECT_NE(order, block_order(1003, 10, 4, 2, 0));
  EXPECT_EQ(order, block_order(1003, 10, 4, 1, 0));
  // Any 40 visits in a row of one window touch 4 blocks.
  std::set<std::int64_t> blocks;
  for (std::size_t i = 0; i < 37; ++i) blocks.insert(order[i] / 10);
  EXPECT_LE(blocks.size(), 5u);
  // Samples are mixed: neighbours rarely follow each other.
  int neighbours = 0;
  for (std::size_t i = 1; i < order.size(); ++i) neighbours += order[i] == order[i - 1] + 1;
  EXPECT_LT(neighbours, 100);
}

}  // namespace
}  // namespace regatta
