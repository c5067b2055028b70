#include "data/array_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "data/idx.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

NpyArray labels_of(const std::vector<std::int32_t>& values) {
  return {Dtype::i32, {std::ssize(values)}, bytes_of(values)};
}

const NpyArray three_images{Dtype::u8, {3, 1, 1, 2}, "aAbBcC"};

// Opens images and labels through files, as a user does.
std::shared_ptr<const Dataset> open_npy(const NpyArray& images, const NpyArray& labels) {
  const TemporaryFolder folder;
  write_npy(folder.path() / "x.npy", images);
  write_npy(folder.path() / "y.npy", labels);
  const std::string prefix = folder.path().string();
  return open_dataset("npy:" + prefix + "/x.npy," + prefix + "/y.npy", Split::train, 0);
}

std::string complaint(const NpyArray& images, const NpyArray& labels) {
  return error_text([&] { open_npy(images, labels); });
}

TEST(ArrayDataset, HandsOutTheSamplesAskedFor) {
  const auto set = open_npy(three_images, labels_of({0, 4, 2}));
  const std::vector<std::int64_t> indices{2, 0, 2};
  std::string samples(6, '\0');
  std::vector<std::int32_t> labels(3);
  set->read(indices, reinterpret_cast<std::byte*>(samples.data()), labels.data());
  EXPECT_EQ(samples, "cCaAcC");
  EXPECT_THAT(labels, ElementsAre(2, 0, 2));
}

TEST(ArrayDataset, ChannelsLastAreTurnedIfTheShapeTellsSo) {
  NpyArray images{Dtype::u8, {1, 5, 6, 3}, {}};
  for (int i = 0; i < 90; ++i) images.bytes += static_cast<char>(i);
  const auto set = open_npy(images, labels_of({0}));
  EXPECT_EQ(set->info().sample, (Shape{3, 5, 6}));
  const std::vector<std::int64_t> indices{0};
  std::string sample(90, '\0');
  std::int32_t label = 0;
  set->read(indices, reinterpret_cast<std::byte*>(sample.data()), &label);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t i = 0; i < 30; ++i) ASSERT_EQ(sample[c * 30 + i], images.bytes[i * 3 + c]);
}

TEST(ArrayDataset, TheSpecMaySayTheLayout) {
  const TemporaryFolder folder;
  const std::string x = (folder.path() / "x.npy").string(), y = (folder.path() / "y.npy").string();
  write_npy(x, {Dtype::u8, {1, 3, 6, 3}, std::string(54, 'a')});
  write_npy(y, labels_of({0}));
  const auto shape = [&](const std::string& suffix) {
    return open_dataset("npy:" + x + "," + y + suffix, Split::train, 0)->info().sample;
  };
  EXPECT_EQ(shape(""), (Shape{3, 6, 3}));
  EXPECT_EQ(shape("@nchw"), (Shape{3, 6, 3}));
  EXPECT_EQ(shape("@nhwc"), (Shape{3, 3, 6}));
}

TEST(ArrayDataset, BytesAreScaledAndFloatsAreNot) {
  const auto bytes = open_npy({Dtype::u8, {1, 3, 1, 1}, "abc"}, labels_of({1}));
  EXPECT_EQ(bytes->info().dtype, Dtype::u8);
  EXPECT_FLOAT_EQ(bytes->info().scale, 1.0f / 255.0f);
  EXPECT_THAT(bytes->info().mean, ElementsAre(0.0f, 0.0f, 0.0f));
  EXPECT_THAT(bytes->info().deviation, ElementsAre(1.0f, 1.0f, 1.0f));
  const auto floats = open_npy({Dtype::f32, {1, 1, 1}, "1234"}, labels_of({0}));
  EXPECT_EQ(floats->info().dtype, Dtype::f32);
  EXPECT_EQ(floats->info().scale, 1.0f);
}

TEST(ArrayDataset, CountsClassesFromTheLargestLabel) {
  EXPECT_EQ(open_npy(three_images, labels_of({0, 4, 2}))->info().classes, 5);
}

TEST(ArrayDataset, ThreeExtentsAreOneChannel) {
  const auto set = open_npy({Dtype::u8, {3, 1, 2}, "aAbBcC"}, labels_of({0, 1, 2}));
  EXPECT_EQ(set->info().sample, (Shape{1, 1, 2}));
  EXPECT_EQ(set->info().count, 3);
}

TEST(ArrayDataset, LabelsMayHaveAnyIntegerType) {
  for (const NpyArray& labels :
       {NpyArray{Dtype::u8, {3}, std::string("\0\1\2", 3)}, labels_of({0, 1, 2}),
        NpyArray{Dtype::i64, {3}, bytes_of<std::int64_t>({0, 1, 2})}})
    EXPECT_EQ(open_npy(three_images, labels)->info().classes, 3);
}

TEST(ArrayDataset, LabelsOutOfRangeAreNamed) {
  EXPECT_THAT(complaint(three_images, labels_of({0, -1, 2})),
              HasSubstr("y.npy' has label -1 at sample 1; labels count classes from 0"));
  EXPECT_THAT(complaint(three_images, labels_of({0, 1, 2'000'000'000})),
              HasSubstr("label 2000000000 at sample 2"));
}

TEST(ArrayDataset, CountsMustMatch) {
  EXPECT_THAT(complaint(three_images, labels_of({0, 1})),
              ::testing::AllOf(HasSubstr("has 3 images"), HasSubstr("has 2 labels")));
}

TEST(ArrayDataset, WrongTypesAndShapesAreNamed) {
  EXPECT_THAT(complaint({Dtype::f64, {1, 1, 1}, "12345678"}, labels_of({0})),
              HasSubstr("x.npy' holds neither uint8 nor float32"));
  EXPECT_THAT(complaint({Dtype::u8, {3, 2}, "aAbBcC"}, labels_of({0, 1, 2})),
              HasSubstr("x.npy' has shape 3x2; images are N x C x H x W"));
  EXPECT_THAT(complaint({Dtype::u8, {0, 1, 2}, ""}, labels_of({})), HasSubstr("nothing in it"));
  EXPECT_THAT(complaint(three_images, {Dtype::f32, {3}, std::string(12, '\0')}),
              HasSubstr("y.npy' holds fractions"));
  EXPECT_THAT(complaint(three_images, {Dtype::u8, {3, 1}, "abc"}),
              HasSubstr("y.npy' has shape 3x1; labels are a plain list"));
}

TEST(ArrayDataset, AnIndexOutsideIsAMistakeOfOurs) {
  const auto set = open_npy(three_images, labels_of({0, 1, 2}));
  std::string sample(2, '\0');
  std::int32_t label = 0;
  for (const std::int64_t index : {std::int64_t{-1}, std::int64_t{3}})
    EXPECT_THROW(set->read({&index, 1}, reinterpret_cast<std::byte*>(sample.data()), &label),
                 Error);
}

TEST(ArrayDataset, IdxFilesMakeOneToo) {
  const TemporaryFolder folder;
  const std::string images = folder.path() / "images", labels = folder.path() / "labels";
  write_idx(images, {Dtype::u8, {2, 1, 2}, "aAbB"});
  write_idx(labels, {Dtype::u8, {2}, std::string("\0\x09", 2)});
  const auto set = open_dataset("idx:" + images + "," + labels, Split::train, 0);
  EXPECT_EQ(set->info().sample, (Shape{1, 1, 2}));
  EXPECT_EQ(set->info().classes, 10);
}

TEST(ArrayDataset, TwoFilesServeBothSplitsAndSaySo) {
  const TemporaryFolder folder;
  const std::string one = folder.path() / "one", two = folder.path() / "two";
  const std::string labels = folder.path() / "labels";
  write_idx(one, {Dtype::u8, {1, 1, 1}, "1"});
  write_idx(two, {Dtype::u8, {1, 1, 2}, "22"});
  write_idx(labels, {Dtype::u8, {1}, std::string(1, '\0')});
  const std::string pair = "idx:" + one + "," + labels;
  EXPECT_TRUE(open_dataset(pair, Split::test, 0)->info().splits_coincide);
  const auto test = open_dataset(pair + "," + two + "," + labels, Split::test, 0);
  EXPECT_FALSE(test->info().splits_coincide);
  EXPECT_EQ(test->info().sample.width(), 2);
}

}  // namespace
}  // namespace regatta
