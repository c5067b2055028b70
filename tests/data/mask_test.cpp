// Masks on disk: what is written is read again, one bit a weight, and a damaged file is refused.
#include "data/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "data/safetensors.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

// 27 weights, of which every third goes, and 8 that all stay.
Mask some_mask() {
  Mask mask{"net#1",
            {whole_tensor("conv.weight", {3, 1, 3, 3}), whole_tensor("fc.weight", {2, 4})}};
  for (std::int64_t i = 0; i < 27; i += 3) mask.tensors[0].set(i, false);
  return mask;
}

TEST(Mask, CountsWhatStays) {
  const Mask mask = some_mask();
  EXPECT_EQ(mask.tensors[0].count(), 27);
  EXPECT_EQ(mask.tensors[0].kept(), 18);
  EXPECT_DOUBLE_EQ(mask.tensors[0].density(), 18.0 / 27);
  EXPECT_DOUBLE_EQ(mask.density(), 26.0 / 35);
  EXPECT_EQ(Mask{}.density(), 1);
}

TEST(Mask, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "mask.safetensors";
  write_mask(path, some_mask());
  EXPECT_EQ(read_mask(path), some_mask());
  EXPECT_EQ(read_mask(path).fingerprint(), some_mask().fingerprint());
}

TEST(Mask, TakesABitAWeightOnDisk) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "mask.safetensors";
  write_mask(path, {"net#1", {whole_tensor("big", {1000, 800})}});
  EXPECT_LT(std::filesystem::file_size(path), 800'000 / 8 + 500);
}

TEST(Mask, IsKnownByItsFingerprint) {
  const Mask mask = some_mask();
  Mask other = mask;
  other.tensors[0].set(0, true);
  EXPECT_NE(other.fingerprint(), mask.fingerprint());
  other = mask;
  other.model = "net#2";
  EXPECT_NE(other.fingerprint(), mask.fingerprint());
  other = mask;
  other.tensors[1].shape = {4, 2};
  EXPECT_NE(other.fingerprint(), mask.fingerprint());
  other = mask;
  std::swap(other.tensors[0], other.tensors[1]);
  EXPECT_EQ(other.fingerprint(), mask.fingerprint()) << "the order of tensors has no say";
}

TEST(Mask, ZeroesWhatItMasksWhateverThatIs) {
  std::vector<float> values(27, 2.0f);
  values[0] = std::numeric_limits<float>::infinity();
  values[3] = std::numeric_limits<float>::quiet_NaN();
  zero_masked(some_mask().tensors[0], values);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i % 3 == 0 ? 0.0f : 2.0f);
}

class DamagedMask : public testing::Test {
 protected:
  // What reading says of the mask's file after a change to it.
  template <class Change>
  std::string said_of(const Change& change) const {
    const auto path = folder.path() / "mask.safetensors";
    write_mask(path, some_mask());
    TensorFile file = read_safetensors(path);
    change(file);
    write_safetensors(path, file);
    return error_text([&] { read_mask(path); });
  }
  const TemporaryFolder folder;
};

TEST_F(DamagedMask, IsRefusedInALineThatNamesTheFile) {
  const std::pair<std::function<void(TensorFile&)>, const char*> cases[]{
      {[](TensorFile& file) { file.tensors[0].bytes[1] ^= 4; }, "changed or damaged"},
      {[](TensorFile& file) { file.metadata["mask of"] = "other#2"; }, "changed or damaged"},
      {[](TensorFile& file) { file.metadata.erase("mask of"); }, "regatta tickets prune makes"},
      {[](TensorFile& file) { file.metadata.erase("fingerprint"); }, "lack 'fingerprint'"},
      {[](TensorFile& file) { file.metadata["shapes"] = "[["; }, "not a JSON object"},
      {[](TensorFile& file) { file.metadata["shapes"] = R"({"conv.weight":[3,1,3,3]})"; },
       "'fc.weight' has no shape"},
      {[](TensorFile& file) { file.tensors.pop_back(); }, "shapes of tensors that it lacks"},
      {[](TensorFile& file) {
         file.metadata["shapes"] = R"({"conv.weight":[3,1,3,-3],"fc.weight":[2,4]})";
       },
       "has the shape [3,1,3,-3]"},
      {[](TensorFile& file) {
         file.metadata["shapes"] = R"({"conv.weight":[3,1,3,9],"fc.weight":[2,4]})";
       },
       "has 4 bytes for 81 bits"},
      {[](TensorFile& file) {
         file.metadata["shapes"] = R"({"conv.weight":[4294967296,4294967296],"fc.weight":[2,4]})";
       },
       "has the shape"},
      {[](TensorFile& file) { file.tensors[0].bytes[3] |= 1 << 5; }, "after its last weight"},
  };
  for (const auto& [change, expected] : cases) {
    const std::string text = said_of(change);
    EXPECT_THAT(text, HasSubstr("mask.safetensors' is not a usable mask")) << expected;
    EXPECT_THAT(text, HasSubstr(expected));
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace regatta
