#include "data/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/crc32c.h"
#include "data/augment_sample.h"
#include "support/error_text.h"
#include "support/images.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field(int number, const std::string& value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(value.size()) + value;
}
std::string entry(const std::string& key, const std::string& feature) {
  return field(1, field(1, key) + field(2, feature));
}
std::string bytes_feature(const std::string& value) { return field(1, field(1, value)); }
// As TensorFlow writes it; Java's writers pack it too.
std::string packed_feature(std::int64_t value) {
  return field(3, field(1, varint(static_cast<std::uint64_t>(value))));
}
std::string plain_feature(std::int64_t value) {
  return field(3, varint(1 << 3) + varint(static_cast<std::uint64_t>(value)));
}

std::string imagenet_example(const std::string& image, std::int64_t label) {
  return field(1, entry("image/height", packed_feature(32)) +
                      entry("image/encoded", bytes_feature(image)) +
                      entry("image/format", bytes_feature("JPEG")) +
                      entry("image/class/label", packed_feature(label)) +
                      entry("image/class/text", bytes_feature("tench")));
}
std::string spark_example(const std::string& image, std::int64_t label) {
  return field(1, entry("label", plain_feature(label)) + entry("image", bytes_feature(image)));
}

TEST(Crc32c, MatchesKnownSums) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TfExample, FindsImageAndLabel) {
  const std::string tensorflow = imagenet_example("pixels", 7), spark = spark_example("dots", 300);
  const ImageExample first = parse_image_example(bytes_of(tensorflow));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(first.image.data()), first.image.size()),
            "pixels");
  EXPECT_EQ(first.label, 7);
  const ImageExample second = parse_image_example(bytes_of(spark));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(second.image.data()), second.image.size()),
            "dots");
  EXPECT_EQ(second.label, 300);
  EXPECT_TRUE(parse_image_example({}).image.empty());
}

TEST(TfExample, CutAnywhereItIsRefusedOrEmpty) {
  const std::string whole = imagenet_example("pixels", 7);
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
    EXPECT_THAT(error_text([&] { parse_image_example(bytes_of(whole.substr(0, bytes))); }),
                HasSubstr("no tf.train.Example"))
        << bytes;
}

TEST(TfRecord, EveryRecordIsFoundAndChecked) {
  const std::string file = tfrecord_of("one") + tfrecord_of("") + tfrecord_of("three");
  const std::vector<RecordPlace> places = parse_tfrecord(bytes_of(file), "x");
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(file.substr(places[2].offset, places[2].bytes), "three");
  const auto complaint = [](const std::string& bytes) {
    return error_text([&] { parse_tfrecord(bytes_of(bytes), "x"); });
  };
  for (std::size_t bytes = 1; bytes < file.size(); ++bytes) {
    if (bytes == 19 || bytes == 35) continue;  // whole records
    EXPECT_NE(complaint(file.substr(0, bytes)), "no error") << bytes;
  }
  std::string damaged = file;
  damaged[1] ^= 1;
  EXPECT_THAT(complaint(damaged), HasSubstr("checksum of a length is wrong at byte 0"));
  damaged = file;
  damaged[13] ^= 1;
  EXPECT_THAT(complaint(damaged), HasSubstr("checksum of record 0 is wrong"));
  std::string huge(8, '\x7f');
  const std::uint32_t crc = masked_crc32c(huge);
  huge.append(reinterpret_cast<const char*>(&crc), 4);
  EXPECT_THAT(complaint(huge + "1234567"), HasSubstr("claims"));
}

TEST(TfRecord, AGlobIsADataSet) {
  const TemporaryFolder folder;
  std::string first, second;
  for (unsigned i = 0; i < 3; ++i)
    first += tfrecord_of(imagenet_example(encode_jpeg(picture(20, 24, 3, i)), i));
  second = tfrecord_of(spark_example(encode_png(picture(20, 24, 3, 9)), 8));
  folder.file("train-0", first);
  folder.file("train-1", second);
  folder.file("test-0", second);
  const std::string spec = "tfrecord:" + (folder.path() / "train-*").string();
  const auto data = open_dataset(spec, Split::train, 0);
  EXPECT_EQ(data->info().count, 4);
  EXPECT_EQ(data->info().classes, 9);
  EXPECT_EQ(data->info().sample, (Shape{3, 20, 24}));
  EXPECT_TRUE(data->info().splits_coincide);
  EXPECT_THAT(data->sample_name(3), HasSubstr("train-1 record 0"));
  const std::vector<std::int64_t> indices{3, 1};
  std::vector<std::byte> samples(2 * 3 * 20 * 24);
  std::vector<std::int32_t> labels(2);
  data->read(indices, samples.data(), labels.data());
  EXPECT_THAT(labels, ElementsAre(8, 1));
  EXPECT_EQ(std::to_integer<int>(samples[0]), picture(20, 24, 3, 9).at(0, 0, 0));
  const auto both = open_dataset(spec + "," + (folder.path() / "test-*").string(), Split::test, 0);
  EXPECT_EQ(both->info().count, 1);
  EXPECT_FALSE(both->info().splits_coincide);
}

TEST(TfRecord, ADamagedRecordIsSkippedAndNamed) {
  const TemporaryFolder folder;
  std::string bytes;
  for (unsigned i = 0; i < 3; ++i)
    bytes += tfrecord_of(imagenet_example(encode_jpeg(picture(20, 24, 3, i)), i));
  bytes[300] ^= 1;  // in the first image
  const auto file = folder.file("x.tfrecord", bytes);
  const auto data = open_dataset("tfrecord:" + file.string(), Split::train, 0);
  const std::vector<std::int64_t> indices{0};
  std::vector<std::byte> sample(sample_bytes(data->info()));
  std::int32_t label = 0;
  data->read(indices, sample.data(), &label);
  EXPECT_EQ(label, 1);
  EXPECT_THAT(data->skipped().first,
              ElementsAre(AllOf(HasSubstr("record 0"), HasSubstr("checksum"))));
}

TEST(TfRecord, MistakesAreNamed) {
  const TemporaryFolder folder;
  const auto complaint = [&](const std::string& bytes) {
    const auto file = folder.file("x", bytes);
    return error_text([&] { open_dataset("tfrecord:" + file.string(), Split::train, 0); });
  };
  EXPECT_THAT(complaint("some text, not records at all"), HasSubstr("not a usable TFRecord file"));
  EXPECT_THAT(complaint(tfrecord_of(imagenet_example("x", -1))),
              HasSubstr("record 0: its label is -1"));
  EXPECT_THAT(complaint(tfrecord_of(field(1, entry("image", bytes_feature("x"))))),
              HasSubstr("no int64 feature"));
  EXPECT_THAT(complaint(tfrecord_of("\xff")), HasSubstr("no tf.train.Example"));
  EXPECT_THAT(complaint(tfrecord_of(imagenet_example("no image", 1))),
              HasSubstr("no image can be read"));
  EXPECT_THAT(complaint(""), HasSubstr("has no records"));
  EXPECT_THAT(error_text([] { open_dataset("tfrecord:/nowhere/*", Split::train, 0); }),
              HasSubstr("no TFRecord file matches"));
}

}  // namespace
}  // namespace regatta
