#include "base/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/scoped_variable.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(Program, ReturnsItsOutputAndExitCode) {
  const ProgramResult result = run_program({"sh", "-c", "echo one; echo two >&2; exit 3"});
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "one\ntwo\n");
  EXPECT_EQ(result.first_line(), "one");
}

TEST(Program, ReportsASignalAsShellsDo) {
  EXPECT_EQ(run_program({"sh", "-c", "kill -TERM $$"}).status, 128 + 15);
}

TEST(Program, NoShellReadsTheArguments) {
  EXPECT_EQ(run_program({"echo", "$HOME; `id` && x"}).output, "$HOME; `id` && x\n");
}

TEST(Program, HasTheVariablesOfItsParentButForThoseThatWereChanged) {
  const ScopedVariable one("REGATTA_TEST_ONE", "1"), two("REGATTA_TEST_TWO", "2");
  EXPECT_EQ(run_program({"sh", "-c", "echo $REGATTA_TEST_ONE $REGATTA_TEST_TWO $REGATTA_TEST_NEW"},
                        {"REGATTA_TEST_TWO=other", "REGATTA_TEST_NEW=3"})
                .output,
            "1 other 3\n");
}

TEST(Program, HasAnEmptyInput) { EXPECT_EQ(run_program({"cat"}).output, ""); }

TEST(Program, TakesMoreOutputThanAPipeHolds) {
  EXPECT_EQ(run_program({"sh", "-c", "yes | head -c 300000"}).output.size(), 300000u);
}

TEST(Program, AMissingOneIsNamed) {
  EXPECT_THAT(error_text([] { run_program({"no-such-program-here"}); }),
              HasSubstr("'no-such-program-here' is not installed"));
}

}  // namespace
}  // namespace regatta
