#include "base/scratch_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/error_text.h"
#include "support/scoped_variable.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(ScratchFolder, IsItsOwnersAloneAndGoesWithIt) {
  fs::path first_path;
  {
    const ScratchFolder first("test"), second("test");  // of one process, so of one number
    first_path = first.path();
    EXPECT_NE(first_path, second.path());
    EXPECT_THAT(first_path.filename().string(), HasSubstr("regatta-test-"));
    std::ofstream(first_path / "file") << "text";
    EXPECT_TRUE(fs::is_empty(second.path()));
  }
  EXPECT_FALSE(fs::exists(first_path));
}

TEST(ScratchFolder, WithoutAPlaceNamesTheVariableThatGivesOne) {
  const ScopedVariable nowhere("TMPDIR", "/nonexistent");
  EXPECT_THAT(error_text([] { ScratchFolder folder("test"); }), HasSubstr("let TMPDIR name one"));
}

}  // namespace
}  // namespace regatta
