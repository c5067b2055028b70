// Where results go: files, links, devices, standard output; and what a terminal shows.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/json.h"
#include "base/program.h"
#include "support/places.h"
#include "support/program_process.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string program = regatta_program().string();

// By the shell, so that standard output can be anything.
ProgramResult shell(const std::string& command) { return run_program({"sh", "-c", command}); }

TEST(Outputs, EveryCommandHasJson) {
  std::vector<std::vector<std::string>> commands;
  for (const app::Command& command : app::commands())
    // What follows "launch --" has --json; completion and manual print text for other programs.
    if (command.name != "bench" && command.name != "data" && command.name != "tickets" &&
        command.name != "launch" && command.name != "completion" && command.name != "manual")
      commands.push_back({std::string(command.name)});
  for (const char* each :
       {"cell", "scaling", "granularity", "fidelity", "placement", "unequal", "ceiling", "runtime"})
    commands.push_back({"bench", each});
  for (const char* each : {"search", "work", "status", "report", "transfer", "stability",
                           "estimate", "prune", "export", "compact"})
    commands.push_back({"tickets", each});
  for (const char* each : {"get", "info", "prepare", "finish", "compare"})
    commands.push_back({"data", each});
  for (std::vector<std::string>& command : commands) {
    command.emplace_back("--help");
    EXPECT_THAT(run_regatta(command).out, HasSubstr("--json FILE"))
        << testing::PrintToString(command);
  }
}

TEST(Outputs, AResultOnStandardOutputIsAlone) {
  for (const char* name : {"-", "/dev/stdout", "/dev/fd/1"}) {
    const ProgramRun run = run_regatta({"models", "tiny", "--json", name});
    EXPECT_EQ(run.code, 0);
    EXPECT_EQ(Json::parse(run.out).at("models").at(0).at("name"), "tiny") << name;
    EXPECT_THAT(run.err, HasSubstr("parameters"));  // what people are told
  }
  const ProgramRun run = run_regatta({"models", "tiny", "--export", "/dev/stdout"});
  EXPECT_EQ(Json::parse(run.out).at("name"), "tiny");
}

TEST(Outputs, AppendedToAFileKeepWhatItHolds) {
  const TemporaryFolder folder;
  const std::string file = folder.file("log", "before\n").string();
  ASSERT_EQ(shell(program + " models tiny --json /dev/stdout >>" + file + " 2>/dev/null").status,
            0);
  const std::string text = read_file(file);
  EXPECT_THAT(text, StartsWith("before\n{"));
  EXPECT_EQ(Json::parse(text.substr(7)).at("models").size(), 1u);
}

TEST(Outputs, DevicesAndLinksStay) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_regatta({"models", "tiny", "--json", "/dev/null"}).code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const fs::path link = folder.path() / "link.json";
  fs::create_symlink("target.json", link);
  EXPECT_EQ(run_regatta({"models", "tiny", "--json", link.string()}).code, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_json(folder.path() / "target.json").at("models").size(), 1u);
}

TEST(Outputs, AFullDiskIsAnErrorInOneLine) {
  const ProgramRun run = run_regatta({"models", "tiny", "--json", "/dev/full"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err, "regatta: cannot write '/dev/full': No space left on device\n");
}

// ulimit -f, by whose signal a program ends without a word.
TEST(Outputs, AFileThatGrowsBeyondItsLimitIsAnErrorInOneLine) {
  const TemporaryFolder folder;
  const ProgramResult run = shell("ulimit -f 1; cd " + folder.path().string() + "; " + program +
                                  " models resnet18 --export net.json 2>&1 >/dev/null");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.output, "regatta: cannot write 'net.json': File too large\n");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Outputs, ResultsOfARunWhoseFolderIsNotUtf8AreWritten) {
  const TemporaryFolder folder;
  const ProgramRun run = run_regatta(
      {"train", "--model", "tiny", "--data", "synth:1x8x8/3@20", "--batch", "8", "--steps", "1",
       "--granularity", "fixed", "--out", (folder.path() / "caf\xe9").string(), "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(Json::parse(run.out).at("run").get<std::string>(), HasSubstr("caf\uFFFD"));
}

TEST(Outputs, WhatCannotBePrintedIsAnError) {
  for (const char* command : {" models", " models --help", " --help", " --version",
                              " data info digits-synth", " models tiny --json -"})
    for (const char* where : {" >/dev/full", " >&-"})
      EXPECT_EQ(shell(program + command + where + " 2>/dev/null").status, 2) << command << where;
  EXPECT_EQ(shell(program + " models 3>&1 >/dev/full 2>&3").output,
            "regatta: cannot write to standard output: it is closed, or its disk is full\n");
}

TEST(Outputs, WhatIsPrintedNeverEndsUpInAFile) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "net.json").string();
  EXPECT_EQ(shell(program + " models tiny --export " + file + " >&-").status, 2);
  EXPECT_EQ(read_json(file).at("name"), "tiny");
}

TEST(Outputs, OfAReportTellWhereItIs) {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  ASSERT_EQ(run_regatta({"train", "--model", "tiny", "--data", "synth:1x8x8/3@20", "--batch", "8",
                         "--steps", "1", "--out", run})
                .code,
            0);
  const ProgramRun told = run_regatta({"report", run, "--json", "-"});
  ASSERT_EQ(told.code, 0) << told.err;
  const Json result = Json::parse(told.out);
  EXPECT_EQ(result.at("run"), run);
  EXPECT_TRUE(fs::exists(result.at("file").get<std::string>()));
}

// A run of four of ten steps, and what it was tested on.
TEST(Outputs, LessThanAnEpochIsTestedOnRequestAndFillsItsBar) {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"train",
                                       "--model",
                                       "tiny",
                                       "--data",
                                       "synth:1x8x8/3@40",
                                       "--batch",
                                       "4",
                                       "--steps",
                                       "4",
                                       "--out",
                                       (folder.path() / name).string(),
                                       "--json",
                                       "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramRun run = run_regatta(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("] 100%"));
    return Json::parse(run.out).at("epochs").at(0).at("test_accuracy");
  };
  EXPECT_TRUE(train("short", {}).is_null());
  EXPECT_TRUE(train("asked", {"--test", "synth:1x8x8/3@40"}).is_number());

  // A longer run is tested, also one that goes on.
  const ProgramRun whole = run_regatta(
      {"train", "--resume", (folder.path() / "short").string(), "--steps", "10", "--json", "-"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(Json::parse(whole.out).at("epochs").at(0).at("test_accuracy").is_number());
}

TEST(Outputs, APlanMakesUpImagesOfTheClassesAskedFor) {
  const TemporaryFolder folder;
  const ProgramRun run =
      run_regatta({"plan", "--model", "tiny", "--classes", "4", "--batch", "8", "--granularity",
                   "fixed", "--out", (folder.path() / "plan.json").string()});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(read_json(folder.path() / "plan.json").at("recipe").at("classes"), 4);
}

// A terminal for a program to write to, and all it was sent.
class Terminal {
 public:
  Terminal() : ours_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    EXPECT_EQ(::grantpt(ours_.get()), 0);
    EXPECT_EQ(::unlockpt(ours_.get()), 0);
    name_ = ::ptsname(ours_.get());
    theirs_ = Descriptor(::open(name_.c_str(), O_RDWR | O_NOCTTY));  // until all was read
  }
  const std::string& name() const { return name_; }
  const std::string& text() {
    char piece[4096];
    for (ssize_t got = 0; (got = ::read(ours_.get(), piece, sizeof piece)) > 0;)
      text_.append(piece, static_cast<std::size_t>(got));
    return text_;
  }

 private:
  Descriptor ours_, theirs_;
  std::string name_, text_;
};

TEST(Terminal, AfterCtrlCNothingRunsIntoTheProgressLine) {
  const TemporaryFolder folder;
  Terminal terminal;
  ProgramProcess process({"train", "--model", "tiny", "--data", "synth:1x12x12/3@800", "--batch",
                          "8", "--test", "none", "--epochs", "100000", "--granularity", "fixed",
                          "--out", (folder.path() / "run").string()},
                         terminal.name());
  const auto wait_until = [](const auto& holds) {
    for (int i = 0; i < 6000 && !holds(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return holds();
  };
  ASSERT_TRUE(wait_until([&] { return terminal.text().find(" left") != std::string::npos; }));
  process.signal(SIGINT);
  ASSERT_TRUE(wait_until([&] {
    terminal.text();
    return process.ended();
  }));
  const std::string& text = terminal.text();
  for (const char* words : {", run folder ", "interrupted and saved"}) {
    const std::size_t at = text.find(words);
    ASSERT_NE(at, std::string::npos) << text;
    const std::size_t begin = text.rfind('\n', at) + 1;
    EXPECT_THAT(text.substr(begin, at - begin), Not(HasSubstr("epoch")));
  }
}

}  // namespace
}  // namespace regatta
