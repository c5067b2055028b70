#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "base/files.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

const std::string two_by_three(
    "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
    "abcdef",
    18);

std::string gzipped(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "z";
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return read_file(path);
}

NpyArray read_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  return read_idx(folder.file("images", bytes));
}

std::string complaint(const std::string& bytes) {
  return error_text([&] { read_bytes(bytes); });
}

TEST(Idx, ReadsPlainAndGzippedFilesAlike) {
  for (const std::string& bytes : {two_by_three, gzipped(two_by_three)}) {
    const NpyArray array = read_bytes(bytes);
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(array.bytes, "abcdef");
    EXPECT_EQ(array.dtype, Dtype::u8);
  }
}

TEST(Idx, WritesWhatItReads) {
  const TemporaryFolder folder;
  write_idx(folder.path() / "x", {Dtype::u8, {2, 3}, "abcdef"});
  EXPECT_EQ(read_file(folder.path() / "x"), two_by_three);
}

TEST(Idx, ATruncatedFileIsRefused) {
  for (std::size_t bytes = 0; bytes < two_by_three.size(); ++bytes)
    EXPECT_NE(complaint(two_by_three.substr(0, bytes)), "no error") << bytes << " bytes";
}

TEST(Idx, AGzipStreamThatIsCutOffIsRefused) {
  const std::string whole = gzipped(two_by_three);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(complaint(whole.substr(0, bytes)), "no error") << bytes << " of " << whole.size();
  EXPECT_THAT(complaint(whole.substr(0, whole.size() - 1)), HasSubstr("gzip stream is cut off"));
}

TEST(Idx, AGzipStreamWithAFlippedBitIsRefused) {
  std::string damaged = gzipped(two_by_three);
  damaged[damaged.size() - 5] ^= 1;  // in its checksum
  EXPECT_THAT(complaint(damaged), HasSubstr("gzip stream is damaged"));
}

TEST(Idx, ExtraBytesAreRefused) {
  EXPECT_THAT(complaint(two_by_three + "g"), HasSubstr("bytes follow"));
  EXPECT_THAT(complaint(gzipped(two_by_three + "g")), HasSubstr("bytes follow"));
}

TEST(Idx, AWrongMagicIsRefused) {
  EXPECT_THAT(complaint("a text file"), HasSubstr("two zero bytes"));
  EXPECT_THAT(complaint(std::string("\0\0\x0d\x01\0\0\0\x01"
                                    "1234",
                                    12)),
              HasSubstr("type code is 13"));
  EXPECT_THAT(complaint(std::string("\0\0\x08\0", 4)), HasSubstr("claims 0 dimensions"));
  EXPECT_THAT(complaint(std::string("\0\0\x08\x09", 4)), HasSubstr("claims 9 dimensions"));
}

TEST(Idx, DimensionsBeyondTheFileAreRefusedBeforeMemoryIsMade) {
  const std::string huge("\0\0\x08\x02\xff\xff\xff\xff\0\0\0\xff", 12);
  EXPECT_THAT(complaint(huge), HasSubstr("its dimensions take 1095216660225 bytes"));
  EXPECT_THAT(complaint(gzipped(huge)), HasSubstr("more than"));
  std::string overflowing("\0\0\x08\x04", 4);
  overflowing += std::string(16, '\xff');
  EXPECT_THAT(complaint(overflowing), HasSubstr("impossibly many"));
}

TEST(Idx, AMissingFileIsNamed) {
  EXPECT_THAT(error_text([] { read_idx("/nowhere/images"); }), HasSubstr("'/nowhere/images'"));
}

}  // namespace
}  // namespace regatta
