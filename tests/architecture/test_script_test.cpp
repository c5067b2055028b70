// scripts/test, with a stand-in for ctest: what a user sees of three thousand tests fits a screen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "base/program.h"
#include "support/places.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TestScript : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path script = test_files() / "scripts/test";
    if (!fs::exists(script)) GTEST_SKIP() << "no sources here";
    for (const char* each : {"scripts", "build", "bin"}) fs::create_directory(folder.path() / each);
    fs::copy_file(script, folder.path() / "scripts/test");
  }
  // ctest writes this log and ends with `code`.
  ProgramResult run(const std::string& log, int code) {
    folder.file("log", log);
    const fs::path ctest = folder.file(
        "bin/ctest",
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --output-log ] && to=$2; shift; done\n"
        "cat '" +
            (folder.path() / "log").string() + "' >\"$to\"\nexit " + std::to_string(code) + "\n");
    fs::permissions(ctest, fs::perms::owner_all);
    const ScopedVariable path("PATH", (folder.path() / "bin").string() + ":" + std::getenv("PATH"));
    return run_program({"bash", (folder.path() / "scripts/test").string()});
  }

  const TemporaryFolder folder;
};

std::string lines_of_tests(int count) {
  std::string log;
  for (int i = 1; i <= count; ++i) {
    const std::string number = std::to_string(i);
    log += "      Start " + number + ": Suite.Test" + number + "\n" + number + "/3000 Test #" +
           number + ": Suite.Test" + number +
           (i % 10 == 0 ? " .....***Skipped" : " .....   Passed") + "    0.01 sec\n";
  }
  return log;
}

TEST_F(TestScript, OfManyTestsPrintsAScreen) {
  const ProgramResult done =
      run(lines_of_tests(3000) +
              "\n100% tests passed, 0 tests failed out of 3000\n\n"
              "Total Test time (real) = 9.00 sec\n\nThe following tests did not run:\n",
          0);
  EXPECT_EQ(done.status, 0);
  EXPECT_LT(std::ranges::count(done.output, '\n'), 30) << done.output;
  EXPECT_THAT(done.output, AllOf(HasSubstr("0 tests failed out of 3000"),
                                 HasSubstr("300 tests skipped"), HasSubstr("Total Test time")));
}

TEST_F(TestScript, OfAFailedTestPrintsItsOutput) {
  const ProgramResult done = run(
      lines_of_tests(2000) +
          "2001/3000 Test #2001: Suite.Wrong .....***Failed    0.01 sec\nthree is not four\n\n" +
          "\n99% tests passed, 1 tests failed out of 3000\n\nTotal Test time (real) = 9.00 sec\n\n"
          "The following tests FAILED:\n\t2001 - Suite.Wrong (Failed)\nErrors while running "
          "CTest\n",
      8);
  EXPECT_EQ(done.status, 8);
  EXPECT_LT(std::ranges::count(done.output, '\n'), 30) << done.output;
  EXPECT_THAT(done.output, AllOf(HasSubstr("three is not four"), HasSubstr("2001 - Suite.Wrong"),
                                 Not(HasSubstr("Suite.Test1 "))));
}

}  // namespace
}  // namespace regatta
