#include "data/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

std::string header(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

NpyArray read_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  return read_npy(folder.file("x.npy", bytes));
}

std::string complaint(const std::string& bytes) {
  return error_text([&] { read_bytes(bytes); });
}

template <class T>
std::vector<T> values(const NpyArray& array) {
  std::vector<T> list(array.bytes.size() / sizeof(T));
  std::memcpy(list.data(), array.bytes.data(), array.bytes.size());
  return list;
}

TEST(Npy, ReadWhatWasWritten) {
  const TemporaryFolder folder;
  for (const Dtype dtype : {Dtype::u8, Dtype::i32, Dtype::i64, Dtype::f32, Dtype::f64}) {
    const NpyArray written{dtype, {2, 3}, std::string(6 * dtype_bytes(dtype), 'q')};
    write_npy(folder.path() / "x.npy", written);
    const NpyArray read = read_npy(folder.path() / "x.npy");
    EXPECT_EQ(read.dtype, dtype);
    EXPECT_EQ(read.shape, written.shape);
    EXPECT_EQ(read.bytes, written.bytes);
  }
}

TEST(Npy, DataBeginsAtAMultipleOf64) {
  const TemporaryFolder folder;
  for (std::int64_t extent = 1; extent < 100'000'000; extent *= 10) {
    write_npy(folder.path() / "x.npy", {Dtype::u8, {extent, 0}, ""});
    EXPECT_EQ(std::filesystem::file_size(folder.path() / "x.npy") % 64, 0u);
  }
}

// The header numpy.save(numpy.arange(3, dtype='<i4')) writes, with its padding.
TEST(Npy, ReadsWhatNumPyWrites) {
  const std::string text = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
  const NpyArray array = read_bytes(
      npy(text + std::string(60, ' ') + "\n", std::string("\0\0\0\0\1\0\0\0\2\0\0\0", 12)));
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(values<std::int32_t>(array), (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  for (const int version : {2, 3})
    EXPECT_EQ(read_bytes(npy(header("|u1", "(1, 2)"), "ab", version)).bytes, "ab");
  EXPECT_THAT(complaint(npy(header("|u1", "(1,)"), "a", 4)), HasSubstr("version 4 is unknown"));
}

TEST(Npy, AScalarHasNoExtents) {
  EXPECT_TRUE(read_bytes(npy(header("<f4", "()"), "1234")).shape.empty());
}

TEST(Npy, OtherIntegersAreWidened) {
  EXPECT_EQ(values<std::int32_t>(read_bytes(npy(header("|i1", "(2,)"), "\xff\x02"))),
            (std::vector<std::int32_t>{-1, 2}));
  EXPECT_EQ(values<std::int32_t>(read_bytes(npy(header("<u2", "(1,)"), "\xff\xff"))),
            (std::vector<std::int32_t>{65535}));
  EXPECT_EQ(values<std::int32_t>(read_bytes(npy(header("<i2", "(1,)"), "\xfe\xff"))),
            (std::vector<std::int32_t>{-2}));
  EXPECT_EQ(values<std::int64_t>(read_bytes(npy(header("<u4", "(1,)"), "\xff\xff\xff\xff"))),
            (std::vector<std::int64_t>{4294967295}));
  EXPECT_EQ(read_bytes(npy(header("<u8", "(1,)"), "12345678")).dtype, Dtype::i64);
}

TEST(Npy, ATruncatedFileIsRefused) {
  const std::string whole = npy(header("<f4", "(2, 2)"), std::string(16, 'x'));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(complaint(whole.substr(0, bytes)), "no error") << bytes << " of " << whole.size();
  EXPECT_EQ(complaint(whole), "no error");
}

TEST(Npy, ExtraBytesAreRefused) {
  EXPECT_THAT(complaint(npy(header("<f4", "(1,)"), "12345")),
              HasSubstr("its shape takes 4 bytes, 5 are there"));
}

TEST(Npy, SizesThatOverflowAreRefused) {
  // 2^62 elements of 4 bytes are 0 bytes to careless arithmetic.
  EXPECT_THAT(complaint(npy(header("<f4", "(4611686018427387904,)"), "")),
              HasSubstr("impossibly many bytes"));
  EXPECT_THAT(complaint(npy(header("|u1", "(99999999999999999999,)"), "")),
              HasSubstr("header is not one NumPy writes"));
}

TEST(Npy, NegativeExtentsAreRefused) {
  EXPECT_THAT(complaint(npy(header("|u1", "(-1, -1)"), "x")), HasSubstr("impossibly many bytes"));
}

TEST(Npy, OtherTypesAreNamed) {
  for (const char* type : {"<f2", ">f4", "|b1", "<c8", "|O", "<U3", "", "<f42"})
    EXPECT_THAT(complaint(npy(header(type, "(1,)"), "1234")),
                HasSubstr("its type is '" + std::string(type) + "'; convert it with astype"));
}

TEST(Npy, FortranOrderIsRefusedWithTheWayOut) {
  EXPECT_THAT(complaint(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "1234")),
              HasSubstr("numpy.ascontiguousarray"));
}

TEST(Npy, ABrokenHeaderIsRefused) {
  for (const char* text :
       {"", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} more",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "{'descr: '<f4'",
        "{'other': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"})
    EXPECT_THAT(complaint(npy(text, "1234")), HasSubstr("header is not one NumPy writes")) << text;
}

TEST(Npy, AnotherKindOfFileIsRefused) {
  EXPECT_THAT(complaint("PK\x03\x04 this is an npz"), HasSubstr("save it with numpy.save"));
  EXPECT_THAT(complaint(""), HasSubstr("save it with numpy.save"));
}

}  // namespace
}  // namespace regatta
