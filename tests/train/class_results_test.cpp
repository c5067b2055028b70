#include "train/class_results.h"

#include <gtest/gtest.h>

namespace regatta {
namespace {

TEST(ClassResults, CountAnswersByClass) {
  Evaluation tested;
  tested.labels = {0, 0, 0, 1, 1};
  tested.answers = {0, 1, 1, 1, 1};
  const ClassResults results = class_results(tested, 3, {"cat", "dog"});
  const Json json = to_json(results);
  EXPECT_EQ(json.at("per_class")[0], (Json{{"name", "cat"}, {"count", 3}, {"accuracy", 1.0 / 3}}));
  EXPECT_EQ(json.at("per_class")[1].at("accuracy"), 1.0);
  EXPECT_EQ(json.at("per_class")[2], (Json{{"name", "2"}, {"count", 0}, {"accuracy", nullptr}}));
  EXPECT_EQ(json.at("confusion"), Json::parse("[[1,2,0],[0,2,0],[0,0,0]]"));
}

TEST(ClassResults, OfVeryManyClassesHaveNoMatrix) {
  EXPECT_EQ(to_json(class_results({}, 1001, {})).at("confusion"), Json());
}

}  // namespace
}  // namespace regatta
