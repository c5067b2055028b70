#include "data/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "data/augment_sample.h"
#include "data/prepare.h"
#include "support/error_text.h"
#include "support/images.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Classes {
  TemporaryFolder folder;
  std::string spec = "folder:" + (folder.path() / "images").string();

  Classes() { write_image_folder(folder.path() / "images", 4, 10, 12, 12); }

  std::shared_ptr<const Dataset> open(const Selection& selection, Split split = Split::train,
                                      bool strict = false) const {
    return open_selection(spec, selection, {.split = split, .seed = 1, .strict = strict});
  }
  std::string complaint(const Selection& selection) const {
    return error_text([&] { open(selection); });
  }
};

std::vector<int> class_counts(const Dataset& data) {
  std::vector<int> counts(static_cast<std::size_t>(data.info().classes));
  for (std::int64_t i = 0; i < data.info().count; ++i)
    ++counts[static_cast<std::size_t>(data.label(i))];
  return counts;
}

TEST(Selection, ClassesGetTheirLabelsInTheOrderGiven) {
  const Classes images;
  const auto data = images.open({.classes = "class3,class1", .subset = ""});
  EXPECT_EQ(data->info().count, 20);
  EXPECT_EQ(data->info().classes, 2);
  EXPECT_THAT(data->info().class_names, ElementsAre("class3", "class1"));
  for (std::int64_t i = 0; i < 20; ++i) {
    std::vector<std::byte> sample(sample_bytes(data->info()));
    std::int32_t label = -1;
    data->read(std::span<const std::int64_t>(&i, 1), sample.data(), &label);
    EXPECT_THAT(data->sample_name(i), HasSubstr(label == 0 ? "/class3/" : "/class1/"));
    EXPECT_EQ(data->label(i), label);
  }
}

TEST(Selection, ClassesMayStandInAFile) {
  const Classes images;
  const std::string file = images.folder.file("list", "class2\n\n class0 \r\n").string();
  EXPECT_THAT(images.open({.classes = file, .subset = ""})->info().class_names,
              ElementsAre("class2", "class0"));
  EXPECT_THAT(images.complaint({.classes = "class0,clas1", .subset = ""}),
              HasSubstr("no class 'clas1' (did you mean 'class1'?)"));
  EXPECT_THAT(images.complaint({.classes = "class0,class0", .subset = ""}), HasSubstr("twice"));
}

TEST(Selection, LabelsAreTheNamesOfClassesWithoutNames) {
  const auto data =
      open_selection("synth:3x8x8/5@50", {.classes = "4,2", .subset = ""}, {.seed = 1});
  EXPECT_EQ(data->info().classes, 2);
  EXPECT_GT(data->info().count, 0);
  EXPECT_LT(data->info().count, 50);
}

TEST(Selection, ANumberKeepsTheSharesOfClassesAndOfTheTestSplit) {
  const Classes images;
  EXPECT_THAT(class_counts(*images.open({.classes = "", .subset = "20"})), ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(class_counts(*images.open({.classes = "", .subset = "20"}, Split::test)),
              ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(class_counts(*images.open({.classes = "", .subset = "10%"})),
              ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(class_counts(*images.open({.classes = "class1,class2", .subset = "0.3"})),
              ElementsAre(3, 3));
  EXPECT_THAT(images.complaint({.classes = "", .subset = "41"}), HasSubstr("only 40"));
  for (const char* wrong : {"0", "1.5", "120%", "0.0", "-3"})
    EXPECT_THAT(images.complaint({.classes = "", .subset = wrong}),
                HasSubstr("use a number of samples"))
        << wrong;
}

TEST(Selection, TheSeedDrawsTheSubset) {
  const std::vector<std::int32_t> labels(1000, 0);
  EXPECT_EQ(drawn_by_class(labels, 100, 1), drawn_by_class(labels, 100, 1));
  EXPECT_NE(drawn_by_class(labels, 100, 1), drawn_by_class(labels, 100, 2));
  // A larger draw holds the smaller one.
  EXPECT_TRUE(
      std::ranges::includes(drawn_by_class(labels, 200, 1), drawn_by_class(labels, 100, 1)));
}

TEST(Selection, AFileNamesTrainingSamples) {
  const Classes images;
  const std::string list = images.folder.file("list", "class0/1003.jpg\nclass2/1009.jpg\n39\n");
  const auto data = images.open({.classes = "", .subset = list});
  ASSERT_EQ(data->info().count, 3);
  EXPECT_THAT(data->sample_name(0), HasSubstr("train/class0/1003.jpg"));
  EXPECT_THAT(data->sample_name(2), HasSubstr("train/class3/1009.jpg"));
  EXPECT_EQ(images.open({.classes = "", .subset = list}, Split::test)->info().count, 40);
  const std::string wrong = images.folder.file("wrong", "class0/1003.jpg\nclass0/1.jpg\n");
  EXPECT_THAT(images.complaint({.classes = "", .subset = wrong}),
              HasSubstr("is called 'class0/1.jpg'"));
  EXPECT_THAT(images.complaint({.classes = "", .subset = "no/such/list"}),
              HasSubstr("no/such/list"));
}

TEST(Selection, AnUnreadableImageIsReplacedByTheNextSelectedOne) {
  const Classes images;
  write_file(images.folder.path() / "images/train/class1/1009.jpg", "no image");
  // The next one of the whole data is of class2, which was not selected.
  const auto data = images.open({.classes = "class1,class3", .subset = ""});
  const std::int64_t last = 9, next = 10;
  std::vector<std::byte> replaced(sample_bytes(data->info())), taken(replaced);
  std::int32_t label = -1, its_label = -1;
  data->read(std::span<const std::int64_t>(&last, 1), replaced.data(), &label);
  data->read(std::span<const std::int64_t>(&next, 1), taken.data(), &its_label);
  EXPECT_TRUE(replaced == taken);
  EXPECT_EQ(label, 1);
  EXPECT_EQ(data->skipped().count, 1);
  EXPECT_THAT(data->skipped().first.at(0), HasSubstr("class1/1009.jpg': "));
  const auto strict = images.open({.classes = "class1", .subset = ""}, Split::train, true);
  EXPECT_THAT(error_text([&] {
                strict->read(std::span<const std::int64_t>(&last, 1), replaced.data(), &label);
              }),
              HasSubstr("(--strict)"));
}

TEST(Selection, IsPreparedInOnePass) {
  const Classes images;
  PrepareOptions options;
  options.spec = images.spec;
  options.out = images.folder.path() / "out";
  options.selection = {.classes = "class3,class0", .subset = "0.5"};
  options.input = Shape{3, 8, 8};
  options.resize_to = 8;
  EXPECT_EQ(prepare_data(options).samples, 20);
  const auto shards = open_dataset("shards:" + options.out.string(), Split::train, 0);
  EXPECT_EQ(shards->info().sample, (Shape{3, 8, 8}));
  EXPECT_THAT(shards->info().class_names, ElementsAre("class3", "class0"));
  EXPECT_THAT(class_counts(*shards), ElementsAre(5, 5));
}

}  // namespace
}  // namespace regatta
