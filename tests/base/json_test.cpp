#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_depth.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Json, KeepsTheOrderOfItsKeys) {
  const TemporaryFolder folder;
  const Json json = read_json(folder.file("a.json", R"({"zebra": 1, "ant": 2, "moose": 3})"));
  EXPECT_EQ(json.dump(), R"({"zebra":1,"ant":2,"moose":3})");
}

TEST(Json, NamesTheFileAndByteWhereItBreaksOff) {
  const TemporaryFolder folder;
  const auto path = folder.file("broken.json", R"({"a": 1, )");
  EXPECT_THAT(error_text([&] { read_json(path); }),
              AllOf(HasSubstr(path.string()), HasSubstr("at byte 10")));
}

TEST(Json, RefusesNumbersThatAreTooLarge) {
  const TemporaryFolder folder;
  const auto path = folder.file("large.json", R"({"a": 1e999999})");
  EXPECT_THAT(error_text([&] { read_json(path); }),
              AllOf(HasSubstr(path.string()), HasSubstr("a number too large")));
}

TEST(Json, RefusesWhatIsNestedTooDeep) {
  const TemporaryFolder folder;
  const std::string deep(100'000, '[');
  const auto path = folder.file("deep.json", deep + std::string(deep.size(), ']'));
  EXPECT_THAT(error_text([&] { read_json(path); }),
              AllOf(HasSubstr(path.string()), HasSubstr("nested too deep")));
}

TEST(Json, BracketsInTextAreNoNesting) {
  EXPECT_FALSE(nests_too_deep('"' + std::string(1000, '[') + '"'));
  EXPECT_FALSE(nests_too_deep(R"({"a\"": ")" + std::string(1000, '{') + "\"}"));
  EXPECT_TRUE(nests_too_deep(R"({"a\\": )" + std::string(1000, '{')));
}

TEST(Json, NamesAMissingFile) {
  EXPECT_THAT(error_text([] { read_json("/nowhere/plan.json"); }), HasSubstr("/nowhere/plan.json"));
}

}  // namespace
}  // namespace regatta
