// Completion and manual pages: what is made from the commands' flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/program.h"
#include "support/program_run.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What bash offers for the last of these words.
std::string completed(const std::vector<std::string>& words) {
  std::string typed;
  for (const std::string& word : words) typed += " '" + word + "'";
  const std::string script = run_regatta({"completion", "bash"}).out + "\nCOMP_WORDS=(regatta" +
                             typed + ")\nCOMP_CWORD=" + std::to_string(words.size()) +
                             "\n_regatta\necho \" ${COMPREPLY[*]} \"\n";
  return run_program({"bash", "-c", script}).output;
}

TEST(Completion, OfCommands) {
  EXPECT_EQ(completed({"tr"}), " train trace \n");
  EXPECT_THAT(completed({""}), AllOf(HasSubstr(" doctor "), HasSubstr(" completion ")));
  EXPECT_THAT(completed({"data", ""}), AllOf(HasSubstr(" get "), HasSubstr(" prepare ")));
}

TEST(Completion, OfFlags) {
  EXPECT_EQ(completed({"train", "--model", "tiny", "--shuf"}), " --shuffle \n");
  EXPECT_THAT(completed({"data", "prepare", "x", "--"}), HasSubstr(" --out "));
  EXPECT_THAT(completed({"data", "get", "--"}), Not(HasSubstr(" --out ")));
}

TEST(Completion, OfValuesThatAFlagNames) {
  EXPECT_EQ(completed({"train", "--shuffle", ""}), " on off \n");
}

TEST(Completion, LeavesOtherValuesToFileNames) {
  EXPECT_EQ(completed({"train", "--init", ""}), "  \n");
  EXPECT_EQ(completed({"report", ""}), "  \n");
}

TEST(Completion, OfZshHasTheSameWords) {
  EXPECT_THAT(
      run_regatta({"completion", "zsh"}).out,
      AllOf(HasSubstr("#compdef regatta\n"), HasSubstr("\"train --shuffle\") echo \"on off\"")));
}

TEST(Completion, KnowsItsShells) {
  const ProgramRun run = run_regatta({"completion", "fish"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("bash and zsh"));
}

TEST(Manual, OfEveryCommandNamesItsFlags) {
  for (const app::Command& command : app::commands()) {
    const std::string page = run_regatta({"manual", std::string(command.name)}).out;
    EXPECT_THAT(page, HasSubstr("\n.SH NAME\nregatta\\-" + std::string(command.name) + " \\- "));
    EXPECT_THAT(page, HasSubstr("\n.SH EXAMPLES\n"));
    visit_flags(command, [&](const CLI::App& app) {
      for (const CLI::Option* option : app.get_options())
        for (std::string name : option->get_lnames()) {
          for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
            name.insert(at, "\\");
          EXPECT_THAT(page, HasSubstr("\\-\\-" + name)) << command.name;
        }
    });
  }
}

TEST(Manual, OfTheProgramListsItsCommands) {
  const std::string page = run_regatta({"manual"}).out;
  for (const app::Command& command : app::commands())
    EXPECT_THAT(page, HasSubstr(".BR regatta\\-" + std::string(command.name) + " (1)"));
}

TEST(Manual, OfNoCommandIsAnError) { EXPECT_EQ(run_regatta({"manual", "sail"}).code, 2); }

}  // namespace
}  // namespace regatta
