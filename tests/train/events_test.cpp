#include "train/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "base/files.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

// A reader of its own, bit by bit from the definitions, so that no mistake is shared.
std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const unsigned char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool one = (crc ^ (byte >> bit)) & 1;
      crc = (crc >> 1) ^ (one ? 0x82f63b78 : 0);
    }
  return crc ^ 0xffffffff;
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<std::string> read_records(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = number_at<std::uint64_t>(file, at);
    EXPECT_EQ(number_at<std::uint32_t>(file, at + 8), masked(slow_crc32c(file.substr(at, 8))));
    const std::string data = file.substr(at + 12, length);
    EXPECT_EQ(data.size(), length);
    EXPECT_EQ(number_at<std::uint32_t>(file, at + 12 + length), masked(slow_crc32c(data)));
    records.push_back(data);
    at += 12 + length + 4;
  }
  return records;
}

// A protocol buffer's fields by number; numbers as their little-endian bytes.
std::map<std::uint64_t, std::string> fields(std::string_view message) {
  std::map<std::uint64_t, std::string> found;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
  };
  while (at < message.size()) {
    const std::uint64_t key = varint();
    std::size_t length = 0;
    switch (key & 7) {
      case 0: {
        const std::uint64_t value = varint();
        found[key >> 3] = {reinterpret_cast<const char*>(&value), sizeof value};
        continue;
      }
      case 1:
        length = 8;
        break;
      case 2:
        length = varint();
        break;
      case 5:
        length = 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
    }
    found[key >> 3] = message.substr(at, length);
    at += length;
  }
  return found;
}

TEST(EventReader, KnowsTheStandardChecksum) {
  EXPECT_EQ(slow_crc32c("123456789"), 0xe3069283u);  // the check value of CRC-32C
}

TEST(EventFile, IsNamedAsTensorBoardExpects) {
  const TemporaryFolder folder;
  const EventFile events(folder.path());
  const std::string name = events.path().filename();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.1")) << name;
  EXPECT_TRUE(name.ends_with(".regatta")) << name;
}

TEST(EventFile, BeginsWithItsVersion) {
  const TemporaryFolder folder;
  const EventFile events(folder.path());
  const auto records = read_records(events.path());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(fields(records[0]).at(3), "brain.Event:2");
}

TEST(EventFile, ScalarsComeBack) {
  const TemporaryFolder folder;
  EventFile events(folder.path());
  events.scalar("train/loss", 0, 2.5f);
  events.scalar("train/loss", 1'000'000'000'000, -0.125f);
  const auto records = read_records(events.path());
  ASSERT_EQ(records.size(), 3u);
  const auto check = [&](const std::string& record, std::int64_t step, float value) {
    auto event = fields(record);
    EXPECT_GT(number_at<double>(event.at(1), 0), 1.7e9) << "seconds since 1970";
    EXPECT_EQ(number_at<std::int64_t>(event.at(2), 0), step);
    auto summary = fields(fields(event.at(5)).at(1));
    EXPECT_EQ(summary.at(1), "train/loss");
    EXPECT_EQ(number_at<float>(summary.at(2), 0), value);
  };
  check(records[1], 0, 2.5f);
  check(records[2], 1'000'000'000'000, -0.125f);
}

TEST(EventFile, TextComesBackForTheTextPage) {
  const TemporaryFolder folder;
  EventFile events(folder.path());
  const std::string long_text(100'000, 'x');
  events.text("recipe", long_text);
  const auto records = read_records(events.path());
  auto value = fields(fields(fields(records.at(1)).at(5)).at(1));
  EXPECT_EQ(value.at(1), "recipe");
  EXPECT_EQ(fields(value.at(8)).at(8), long_text);
  EXPECT_EQ(fields(fields(value.at(9)).at(1)).at(1), "text");
}

TEST(EventFile, EveryRecordIsThereAtOnce) {
  const TemporaryFolder folder;
  EventFile events(folder.path());
  for (std::size_t i = 0; i < 5; ++i) {
    events.scalar("loss", 0, 0.0f);
    EXPECT_EQ(read_records(events.path()).size(), i + 2);
  }
}

TEST(EventFile, AMissingFolderIsNamed) {
  EXPECT_THAT(error_text([] { EventFile("/nowhere/run"); }),
              HasSubstr("cannot create '/nowhere/run/events.out.tfevents."));
}

}  // namespace
}  // namespace regatta
