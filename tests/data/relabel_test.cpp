#include "data/relabel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/array_dataset.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

// A sample of each label, whose class is called as `names` say.
std::shared_ptr<const Dataset> data_of(const Names& names, int classes) {
  DatasetInfo info;
  info.spec = "made";
  info.class_names = names;
  NpyArray images{Dtype::u8, {classes, 1, 1, 1}, std::string(std::size_t(classes), 'x')};
  NpyArray labels{Dtype::u8, {classes}, {}};
  for (int label = 0; label < classes; ++label) labels.bytes += static_cast<char>(label);
  return array_dataset(info, {"x", images}, {"y", labels});
}

std::vector<std::int32_t> labels_of(const Dataset& data) {
  const auto count = static_cast<std::size_t>(data.info().count);
  std::vector<std::int64_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = static_cast<std::int64_t>(i);
  std::vector<std::byte> samples(count);
  std::vector<std::int32_t> labels(count);
  data.read(std::span<const std::int64_t>(indices), samples.data(), labels.data());
  return labels;
}

TEST(Relabel, MatchesSomeOfTheClassesInAnyOrderByName) {
  const auto data = labelled_as(data_of({"dog", "cat"}, 2), {"bird", "cat", "dog"});
  EXPECT_EQ(labels_of(*data), (std::vector<std::int32_t>{2, 1}));
  EXPECT_EQ(data->info().classes, 3);
  EXPECT_EQ(data->info().class_names, (Names{"bird", "cat", "dog"}));
}

TEST(Relabel, LeavesLabelsAloneWhereEitherSideHasNoNames) {
  for (const auto& [own, wanted] :
       {std::pair{Names{}, Names{"a", "b", "c"}}, std::pair{Names{"b", "a"}, Names{}}})
    EXPECT_EQ(labels_of(*labelled_as(data_of(own, 2), wanted)), (std::vector<std::int32_t>{0, 1}));
}

TEST(Relabel, RefusesClassesTheNetworkDoesNotKnowAndListsTheDifferences) {
  EXPECT_THAT(
      error_text([&] {
        labelled_as(data_of({"cat", "yak"}, 2), {"bird", "cat"});
      }),
      AllOf(HasSubstr("'made'"), HasSubstr("'yak'"), HasSubstr("lacks the network's 'bird'")));
  Names many;
  for (int i = 0; i < 40; ++i) many.push_back("class" + std::to_string(i));
  EXPECT_THAT(error_text([&] { labelled_as(data_of(many, 40), {"cat"}); }),
              HasSubstr("'class4' and 35 more;"));
}

}  // namespace
}  // namespace regatta
