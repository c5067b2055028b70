// TFRecord files as a reader sees them that knows only the two specifications: TensorFlow's record
// format and protocol buffers' wire format. Nothing here is shared with the code that writes them.
#include "data/tf_example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "base/files.h"
#include "data/augment_sample.h"
#include "data/prepare.h"
#include "support/images.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

// CRC-32C bit by bit: the reversed polynomial 0x82f63b78.
std::uint32_t slow_crc(const std::string& bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}
std::uint32_t masked(const std::string& bytes) {
  const std::uint32_t crc = slow_crc(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::uint64_t little_endian(const std::string& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    const std::string length = file.substr(at, 8);
    const std::uint64_t bytes = little_endian(length);
    if (little_endian(file.substr(at + 8, 4)) != masked(length)) throw std::runtime_error("length");
    records.push_back(file.substr(at + 12, bytes));
    if (records.back().size() != bytes) throw std::runtime_error("cut off");
    if (little_endian(file.substr(at + 12 + bytes, 4)) != masked(records.back()))
      throw std::runtime_error("payload");
    at += 16 + bytes;
  }
  return records;
}

struct Reader {
  const std::string& bytes;
  std::size_t at = 0;

  bool more() const { return at < bytes.size(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes.at(at++));
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  // The content of the next field, which has this number and is length-delimited.
  std::string content(std::uint64_t number) {
    if (varint() != (number << 3 | 2)) throw std::runtime_error("another field");
    const std::uint64_t length = varint();
    if (length > bytes.size() - at) throw std::runtime_error("too long");
    at += length;
    return bytes.substr(at - length, length);
  }
};

struct Example {
  std::map<std::string, std::string> bytes;
  std::map<std::string, std::uint64_t> numbers;
};

Example parse(const std::string& message) {
  Example example;
  Reader whole{message};
  const std::string features = whole.content(1);
  EXPECT_FALSE(whole.more());
  for (Reader map{features}; map.more();) {
    const std::string entry = map.content(1);
    Reader pair{entry};
    const std::string key = pair.content(1), feature = pair.content(2);
    Reader kind{feature};
    if (feature.at(0) == (3 << 3 | 2)) {  // int64_list
      const std::string list = kind.content(3);
      Reader values{list};
      const std::string packed = values.content(1);
      Reader number{packed};
      example.numbers[key] = number.varint();
      EXPECT_FALSE(number.more());
    } else {  // bytes_list
      const std::string list = kind.content(1);
      Reader values{list};
      example.bytes[key] = values.content(1);
    }
  }
  return example;
}

std::vector<Example> examples_in(const fs::path& file) {
  std::vector<Example> examples;
  for (const std::string& record : records_of(read_file(file))) examples.push_back(parse(record));
  return examples;
}

TEST(TfExampleWriter, AReaderOfTheSpecificationFindsEveryFeature) {
  const std::string image(300, 'x');  // a length of two varint bytes
  const std::string message = tf_example({.encoded = image,
                                          .format = "JPEG",
                                          .shape = {3, 200, 1000},
                                          .label = 999,
                                          .class_name = "tench",
                                          .file_name = "a.jpg"});
  const Example found = parse(message);
  EXPECT_EQ(found.bytes, (std::map<std::string, std::string>{{"image/encoded", image},
                                                             {"image/format", "JPEG"},
                                                             {"image/class/text", "tench"},
                                                             {"image/filename", "a.jpg"}}));
  EXPECT_EQ(found.numbers, (std::map<std::string, std::uint64_t>{{"image/height", 200},
                                                                 {"image/width", 1000},
                                                                 {"image/channels", 3},
                                                                 {"image/class/label", 999}}));
}

TEST(PrepareTfrecord, ImageFilesAreKeptAsTheyAre) {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images";
  write_image_folder(images, 2, 3, 20, 30);
  // Another size, another kind and no image at all.
  write_file(images / "train/class1/1001.jpg", encode_png(picture(40, 25, 3, 7)));
  write_file(images / "train/class1/1002.jpg", "damaged");
  PrepareOptions options;
  options.spec = "folder:" + images.string();
  options.out = folder.path() / "out";
  options.form = PreparedForm::tfrecord;
  const Prepared made = prepare_data(options);
  EXPECT_EQ(made.files, 2);
  EXPECT_EQ(made.skipped.count, 1);

  const auto examples = examples_in(options.out / "train-00000-of-00001.tfrecord");
  ASSERT_EQ(examples.size(), 6u);
  std::map<std::string, int> met;
  for (const Example& each : examples) {
    const std::string text = each.bytes.at("image/class/text");
    const std::string name = text + "/" + each.bytes.at("image/filename");
    ++met[name];
    EXPECT_EQ(each.bytes.at("image/encoded"), read_file(images / "train" / name));
    EXPECT_EQ(each.numbers.at("image/class/label"), text == "class0" ? 0u : 1u);
    const bool png = name == "class1/1001.jpg";
    EXPECT_EQ(each.bytes.at("image/format"), png ? "PNG" : "JPEG");
    EXPECT_EQ(each.numbers.at("image/height"), png ? 40u : 20u);
    EXPECT_EQ(each.numbers.at("image/width"), png ? 25u : 30u);
    EXPECT_EQ(each.numbers.at("image/channels"), 3u);
  }
  // The damaged one, the last, was replaced by the first.
  EXPECT_EQ(met.size(), 5u);
  EXPECT_EQ(met.at("class0/1000.jpg"), 2);
}

TEST(PrepareTfrecord, ResizedSamplesAreLosslessImages) {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images";
  write_image_folder(images, 2, 5, 40, 30);
  PrepareOptions options;
  options.spec = "folder:" + images.string();
  options.input = Shape{3, 16, 16};
  options.resize_to = 16;
  options.file_bytes = std::int64_t{3} * 16 * 16 * 4;
  options.out = folder.path() / "shards";
  prepare_data(options);
  options.form = PreparedForm::tfrecord;
  options.out = folder.path() / "records";
  EXPECT_EQ(prepare_data(options).files, 6);  // 10 samples a split, 4 a file

  std::int64_t examples = 0;
  for (const auto& entry : fs::directory_iterator(options.out))
    if (entry.path().extension() == ".tfrecord")
      for (const Example& each : examples_in(entry.path())) {
        ++examples;
        EXPECT_EQ(each.bytes.at("image/format"), "PNG");
        EXPECT_EQ(each.numbers.at("image/height"), 16u);
        EXPECT_EQ(each.numbers.at("image/width"), 16u);
      }
  EXPECT_EQ(examples, 20);

  // Decoded, they are the samples of the shards; the test split is in the same order too.
  const auto records =
      open_dataset("tfrecord:" + (options.out / "test-*.tfrecord").string(), Split::train, 0);
  const auto shards = open_dataset("shards:" + (folder.path() / "shards").string(), Split::test, 0);
  std::vector<std::byte> sample(sample_bytes(shards->info())), other(sample);
  for (std::int64_t i = 0; i < 10; ++i) {
    std::int32_t label = 0, other_label = 0;
    shards->read(std::span(&i, 1), sample.data(), &label);
    records->read(std::span(&i, 1), other.data(), &other_label);
    EXPECT_EQ(label, other_label);
    EXPECT_TRUE(sample == other);
  }
}

TEST(PrepareTfrecord, GreyArraysBecomeGreyImages) {
  const TemporaryFolder folder;
  PrepareOptions options;
  options.spec = "digits-synth";
  options.selection.subset = "20";
  options.form = PreparedForm::tfrecord;
  options.out = folder.path() / "out";
  prepare_data(options);
  const auto examples = examples_in(options.out / "train-00000-of-00001.tfrecord");
  ASSERT_EQ(examples.size(), 20u);
  EXPECT_EQ(examples.front().numbers.at("image/channels"), 1u);
  EXPECT_FALSE(examples.front().bytes.contains("image/filename"));
}

}  // namespace
}  // namespace regatta
