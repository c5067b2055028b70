#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Json, NamesAMissingFile) {
  EXPECT_THAT(error_text([] { read_json("/nowhere/plan.json"); }), HasSubstr("/nowhere/plan.json"));
}

}  // namespace
}  // namespace regatta
