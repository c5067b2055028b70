#include "data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Records whose pixels all have the record's number.
std::string records(const std::vector<std::string>& labels) {
  std::string bytes;
  for (std::size_t i = 0; i < labels.size(); ++i)
    bytes += labels[i] + std::string(3072, static_cast<char>(i));
  return bytes;
}

TEST(Cifar, TenComesFromFiveBatches) {
  const TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i)
    folder.file("data_batch_" + std::to_string(i) + ".bin",
                records({std::string(1, char(i)), std::string(1, char(i + 4))}));
  folder.file("test_batch.bin", records({"\x09"}));
  folder.file("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const std::string spec = "cifar10:" + folder.path().string();
  const auto train = open_dataset(spec, Split::train, 0);
  EXPECT_EQ(train->info().count, 10);
  EXPECT_EQ(train->info().classes, 10);
  EXPECT_EQ(train->info().sample, (Shape{3, 32, 32}));
  EXPECT_EQ(train->info().class_names.at(9), "j");
  EXPECT_EQ(train->info().mean.size(), 3u);
  EXPECT_FALSE(train->info().splits_coincide);
  const std::vector<std::int64_t> indices{3};
  std::vector<std::byte> sample(3072);
  std::int32_t label = 0;
  train->read(indices, sample.data(), &label);
  EXPECT_EQ(label, 6);
  EXPECT_THAT(sample, ::testing::Each(std::byte{1}));
  // Fewer labels than classes are still ten classes.
  EXPECT_EQ(open_dataset(spec, Split::test, 0)->info().classes, 10);
}

TEST(Cifar, AHundredTakesTheFineLabel) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "cifar-100-binary");
  folder.file("cifar-100-binary/train.bin", records({"\x13\x63", {"\x01\x02"}}));
  folder.file("cifar-100-binary/test.bin", records({"\x01\x02"}));
  const auto train = open_dataset("cifar100:" + folder.path().string(), Split::train, 0);
  EXPECT_EQ(train->info().classes, 100);
  const std::vector<std::int64_t> indices{0, 1};
  std::vector<std::byte> samples(2 * 3072);
  std::vector<std::int32_t> labels(2);
  train->read(indices, samples.data(), labels.data());
  EXPECT_THAT(labels, ElementsAre(99, 2));
}

TEST(Cifar, LiesAreNamed) {
  const auto complaint = [](const std::string& bytes) {
    return error_text([&] {
      CifarRecords found;
      parse_cifar(std::as_bytes(std::span(bytes)), cifar10_form(), "x.bin", found);
    });
  };
  EXPECT_THAT(complaint(""), AllOf(HasSubstr("'x.bin' has 0 bytes"), HasSubstr("3073")));
  EXPECT_THAT(complaint(records({"\x01"}).substr(1)), HasSubstr("no whole records"));
  EXPECT_THAT(complaint(records({"\x01", "\x0a"})), HasSubstr("label 10 in record 1"));
  EXPECT_THAT(error_text([] { open_dataset("cifar10:/nowhere", Split::train, 0); }),
              HasSubstr("data_batch_1.bin"));
}

}  // namespace
}  // namespace regatta
