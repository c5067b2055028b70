#include "data/shard_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstring>

#include "base/crc32c.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

ShardHeader two_by_two() {
  ShardHeader header;
  header.channels = 1;
  header.height = header.width = 2;
  return header;
}

// A shard that says what `change` makes of its header, with checksums that hold.
template <class Change>
std::string complaint(const Change& change) {
  std::string bytes = shard_bytes(two_by_two(), {{0, 1, 0}, {1, 2, 0}}, "abcdefgh");
  ShardHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  change(header);
  header.header_crc =
      crc32c({reinterpret_cast<const char*>(&header), offsetof(ShardHeader, header_crc)});
  std::memcpy(bytes.data(), &header, sizeof header);
  const TemporaryFolder folder;
  return error_text([&] { MappedShard shard(folder.file("shard", bytes)); });
}

TEST(ShardFile, SaysWhatWasWritten) {
  const TemporaryFolder folder;
  const MappedShard shard(
      folder.file("shard", shard_bytes(two_by_two(), {{0, 1, 0}, {7, 2, 0}}, "abcdefgh")));
  EXPECT_EQ(shard.count(), 2);
  EXPECT_EQ(shard.samples(1), "efgh");
  EXPECT_EQ(shard.entry(1).index, 7);
  EXPECT_TRUE(shard.sound(0) && shard.sound(1));
}

TEST(ShardFile, AFifoIsRefusedAndNotWaitedFor) {
  const TemporaryFolder folder;
  const std::filesystem::path fifo = folder.path() / "shard";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_text([&] { MappedShard shard(fifo); }),
              HasSubstr("shard': it is not a regular file"));
}

TEST(ShardFile, CountsThatOverflowAreRefused) {
  // 2^62 samples of 4 bytes and 2^60 entries of 16 are nothing to careless arithmetic.
  for (const std::uint64_t count : {std::uint64_t{1} << 62, (std::uint64_t{1} << 62) + 2,
                                    (std::uint64_t{1} << 60) + 2, ~std::uint64_t{0}})
    EXPECT_THAT(complaint([&](ShardHeader& header) { header.count = count; }),
                HasSubstr("claims " + std::to_string(count) + " samples, more than it can hold"));
  EXPECT_THAT(complaint([](ShardHeader& header) { header.count = 0; }), HasSubstr("nothing in it"));
}

TEST(ShardFile, ExtentsThatOverflowAreRefused) {
  EXPECT_THAT(complaint([](ShardHeader& header) {
                header.channels = 1u << 31;
                header.height = 1u << 31;
                header.width = 4;
              }),
              HasSubstr("nothing in it"));
  EXPECT_THAT(complaint([](ShardHeader& header) { header.height = ~0u; }),
              HasSubstr("more than it can hold"));
}

TEST(ShardFile, ATableBesideItsChecksumIsRefused) {
  EXPECT_THAT(complaint([](ShardHeader& header) { header.table_crc ^= 1; }),
              HasSubstr("its table is damaged"));
}

}  // namespace
}  // namespace regatta
