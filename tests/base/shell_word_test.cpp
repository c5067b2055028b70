#include "base/shell_word.h"

#include <gtest/gtest.h>

#include "base/program.h"

namespace regatta {
namespace {

TEST(ShellWord, IsReadBackByAShellAsItWas) {
  for (const std::string text : {"runs/tiny", "", "a b", "it's", "$HOME", "*.jpg", "a\\b", "`id`",
                                 "\"", "two\nlines", "~", "caf\xe9"}) {
    const ProgramResult said = run_program({"sh", "-c", "printf %s. " + shell_word(text)});
    EXPECT_EQ(said.output, text + ".");
  }
}

TEST(ShellWord, LeavesPlainNamesAsTheyAre) {
  EXPECT_EQ(shell_word("folder:/data/x-1_2.d,3"), "folder:/data/x-1_2.d,3");
}

}  // namespace
}  // namespace regatta
