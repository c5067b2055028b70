#include "data/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A file with this header and `data_bytes` bytes of data; its length field may lie.
std::string file_with(const std::string& header, std::size_t data_bytes,
                      std::optional<std::uint64_t> claimed_length = {}) {
  const std::uint64_t length = claimed_length.value_or(header.size());
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes + header + std::string(data_bytes, 'x');
}

// What reading such a file says, without the file's name.
std::string complaint(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder.file("weights.safetensors", bytes);
  const std::string error = error_text([&] { read_safetensors(path); });
  EXPECT_TRUE(error == "no error" || error.starts_with("'" + path.string() + "'")) << error;
  return error.substr(std::min(error.size(), path.string().size() + 2));
}

std::string complaint_about(const std::string& header, std::size_t data_bytes) {
  return complaint(file_with(header, data_bytes));
}

TEST(Safetensors, ReadWhatWasWrittenInOrder) {
  const TemporaryFolder folder;
  TensorFile written;
  written.tensors = {{"z", Dtype::f32, {2, 1}, "12345678"},
                     {"a", Dtype::i64, {1}, "abcdefgh"},
                     {"scalar", Dtype::bf16, {}, "xy"},
                     {"empty", Dtype::u8, {0, 3}, ""}};
  written.metadata = {{"format", "pt"}, {"epoch", "3"}};
  write_safetensors(folder.path() / "f", written);
  const TensorFile read = read_safetensors(folder.path() / "f");
  EXPECT_EQ(read.metadata, written.metadata);
  ASSERT_EQ(read.tensors.size(), written.tensors.size());
  for (const NamedTensor& tensor : written.tensors) {
    const NamedTensor* found = read.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(found->bytes, tensor.bytes);
  }
  EXPECT_EQ(read.tensors[0].name, "z");
  EXPECT_EQ(read.find("b"), nullptr);
}

TEST(Safetensors, DataBeginsAtAMultipleOfEight) {
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "f", {.tensors = {{"n", Dtype::u8, {1}, "x"}}, .metadata = {}});
  EXPECT_EQ(read_file(folder.path() / "f").size() % 8, 1u);
}

TEST(Safetensors, NothingIsWrittenFromATensorThatLies) {
  const TemporaryFolder folder;
  const TensorFile short_data{.tensors = {{"n", Dtype::f32, {2}, "1234"}}, .metadata = {}};
  EXPECT_THROW(write_safetensors(folder.path() / "f", short_data), Error);
  const TensorFile twins{.tensors = {{"n", Dtype::u8, {1}, "1"}, {"n", Dtype::u8, {1}, "2"}},
                         .metadata = {}};
  EXPECT_THROW(write_safetensors(folder.path() / "f", twins), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "f"));
}

TEST(Safetensors, DataMayComeInAnotherOrderThanTheHeader) {
  const TemporaryFolder folder;
  const auto path =
      folder.file("f", file_with(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                                 R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                 2));
  EXPECT_EQ(read_safetensors(path).tensors[0].name, "a");
}

TEST(Safetensors, AnEmptyFileOfTensorsIsFine) { EXPECT_EQ(complaint(file_with("{}", 0)), ""); }

TEST(Safetensors, ATruncatedFileIsRefused) {
  const std::string whole =
      file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(complaint(whole.substr(0, bytes)), "") << bytes << " of " << whole.size();
  EXPECT_EQ(complaint(whole), "");
}

TEST(Safetensors, AHeaderLongerThanTheFileIsRefusedBeforeMemoryIsMade) {
  EXPECT_THAT(complaint(file_with("{}", 0, ~0ull)), HasSubstr("claims 18446744073709551615 bytes"));
  EXPECT_THAT(complaint(file_with("{}", 0, 3)), HasSubstr("claims 3 bytes, 2 are there"));
}

TEST(Safetensors, AHeaderThatIsNoObjectIsRefused) {
  EXPECT_THAT(complaint_about("{", 0), HasSubstr("not JSON"));
  EXPECT_THAT(complaint_about("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(complaint_about(R"({"a":7})", 0), HasSubstr("tensor 'a' lacks"));
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F32","shape":[1]}})", 4), HasSubstr("lacks"));
  EXPECT_THAT(complaint_about(R"({"__metadata__":{"epoch":3}})", 0), HasSubstr("is not text"));
}

TEST(Safetensors, AHeaderThatIsNestedTooDeepIsRefused) {
  const std::string deep = std::string(50'000, '[') + std::string(50'000, ']');
  EXPECT_THAT(
      complaint_about(R"({"a":{"dtype":"F32","shape":)" + deep + R"(,"data_offsets":[0,4]}})", 4),
      HasSubstr("nested too deep"));
}

TEST(Safetensors, OffsetsOutsideTheFileAreRefused) {
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4),
              HasSubstr("tensor 'a' at 0..8 is not within 4 data bytes"));
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
              HasSubstr("at 4..0 is not within"));
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4),
              HasSubstr("the data offset -4"));
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1e99]}})", 4),
              HasSubstr("the data offset 1e+99"));
}

TEST(Safetensors, OverlapsHolesAndLeftoversAreRefused) {
  const std::string first = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)";
  EXPECT_THAT(complaint_about(first + R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6),
              HasSubstr("tensor 'b' at 2..6 overlaps"));
  EXPECT_THAT(complaint_about(first + R"("b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", 6),
              HasSubstr("tensor 'b' at 5..6 leaves a hole after byte 4"));
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 6),
              HasSubstr("2 bytes follow its last tensor"));
}

TEST(Safetensors, SizesThatDoNotMatchShapeAndTypeAreRefused) {
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("tensor 'a' at 0..4 is not what its shape and type take"));
  // 2^32 * 2^32 elements of 4 bytes are 0 bytes to careless arithmetic.
  EXPECT_THAT(
      complaint_about(
          R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      HasSubstr("tensor 'a' at 0..0 is not what"));
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              HasSubstr("the extent -1"));
}

TEST(Safetensors, AnUnknownTypeIsNamed) {
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1),
              AllOf(HasSubstr("tensor 'a' has type F8_E4M3"), HasSubstr("save it as F32")));
}

TEST(Safetensors, TwoTensorsOfOneNameAreRefused) {
  EXPECT_THAT(complaint_about(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                              R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                              2),
              HasSubstr("'a' appears twice"));
  EXPECT_EQ(complaint_about(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                            2),
            "")
      << "equal keys of different tensors are no twins";
}

TEST(Safetensors, AMissingFileIsNamed) {
  EXPECT_THAT(error_text([] { read_safetensors("/nowhere/w.safetensors"); }),
              HasSubstr("cannot read '/nowhere/w.safetensors': No such file"));
}

}  // namespace
}  // namespace regatta
