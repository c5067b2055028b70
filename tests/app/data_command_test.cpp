#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/program.h"
#include "support/images.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DataCommand, InfoTellsSplitsClassesAndPixels) {
  const TemporaryFolder folder;
  write_image_folder(folder.path() / "images", 2, 3, 16, 16);
  const fs::path file = folder.path() / "info.json";
  const std::string spec = "folder:" + (folder.path() / "images").string();
  const ProgramRun run = run_regatta({"data", "info", spec, "--exact", "--json", file.string()});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("shape: 3x16x16"), HasSubstr(R"(["class0","class1"])")));
  const Json json = read_json(file);
  EXPECT_EQ(json.at("splits").at("test").at("samples"), 6);
  EXPECT_GT(json.at("splits").at("train").at("bytes"), 1000);
  EXPECT_EQ(json.at("pixels").at("samples"), 6);
  EXPECT_NEAR(json.at("pixels").at("mean").at(0).get<double>(), 0.5, 0.2);
  EXPECT_EQ(json.at("skipped").at("count"), 0);
}

TEST(DataCommand, WhatPrepareMakesCompareFindsTheSame) {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images";
  write_image_folder(images, 2, 3, 40, 56);
  std::ofstream(images / "train" / "class1" / "1001.jpg") << "no image";
  const std::string spec = "folder:" + images.string(), out = (folder.path() / "out").string();
  const fs::path file = folder.path() / "made.json";
  const ProgramRun made = run_regatta({"data", "prepare", spec, "--size", "24x24", "--out", out,
                                       "--workers", "2", "--json", file.string()});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("1 sample could not be read and was replaced"));
  EXPECT_EQ(read_json(file).at("skipped").at("count"), 1);
  const ProgramRun same =
      run_regatta({"data", "compare", spec, "shards:" + out, "--input", "3x24x24"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.out, "train: 0 of 6 samples differ\ntest: 0 of 6 samples differ\n");
  const ProgramRun again = run_regatta({"data", "prepare", spec, "--size", "24x24", "--out", out});
  EXPECT_THAT(again.out, HasSubstr("(2 of them kept)"));
}

TEST(DataCommand, PartsAreJoinedByFinish) {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images";
  write_image_folder(images, 3, 4, 40, 56);
  const std::string out = (folder.path() / "out").string();
  const auto part = [&](const std::string& which) {
    const ProgramRun run =
        run_regatta({"data", "prepare", "folder:" + images.string(), "--resize", "24", "--classes",
                     "class2,class0", "--shard-size", "4KiB", "--out", out, "--part", which});
    EXPECT_EQ(run.code, 0) << run.err;
    return run;
  };
  const ProgramRun first = part("2/2");
  EXPECT_THAT(first.out, HasSubstr("regatta data finish " + out));
  EXPECT_THAT(first.err, AllOf(HasSubstr("part 2/2 ["), HasSubstr("images/s")));
  const ProgramRun early = run_regatta({"data", "finish", out});
  EXPECT_EQ(early.code, 2);
  EXPECT_THAT(early.err, HasSubstr("--input 3x24x24 --resize 24 --classes class2,class0 "
                                   "--shard-size 4096 --out " +
                                   out + " --part 1/2"));
  part("1/2");
  const ProgramRun joined = run_regatta({"data", "finish", out});
  EXPECT_EQ(joined.code, 0) << joined.err;
  EXPECT_THAT(joined.out,
              AllOf(HasSubstr("16 samples"), HasSubstr("train with --data shards:" + out)));
}

// What a command prints to be pasted, run by a shell as it stands.
TEST(DataCommand, PrintedCommandsWorkWhereFoldersHaveSpaces) {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "my images";
  write_image_folder(images, 2, 3, 16, 16);
  const std::string out = (folder.path() / "it's here").string();
  const ProgramRun first = run_regatta({"data", "prepare", "folder:" + images.string(),
                                        "--shard-size", "1KiB", "--out", out, "--part", "1/2"});
  ASSERT_EQ(first.code, 0) << first.err;
  const auto pasted = [&](const std::string& text) {
    const std::size_t at = text.find("regatta data ");
    if (at == std::string::npos) return ProgramResult{-1, "no command in: " + text};
    return run_program(
        {"sh", "-c",
         "regatta() { '" + regatta_program().string() + "' \"$@\"; }; " + text.substr(at)});
  };
  const ProgramRun early = run_regatta({"data", "finish", out});
  EXPECT_EQ(early.code, 2);
  const ProgramResult made = pasted(early.err);
  EXPECT_EQ(made.status, 0) << made.output;
  const ProgramResult joined = pasted(first.out);
  EXPECT_EQ(joined.status, 0) << joined.output;
  const std::size_t at = joined.output.find("--data ");
  ASSERT_NE(at, std::string::npos) << joined.output;
  const ProgramResult told = pasted("regatta data info " + joined.output.substr(at + 7));
  EXPECT_EQ(told.status, 0) << told.output;
}

TEST(DataCommand, MistakesOfPrepareAreNamed) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const auto complaint = [&](std::vector<std::string> flags) {
    std::vector<std::string> all{"data", "prepare", "synth:3x8x8/2@10", "--out", out};
    all.insert(all.end(), flags.begin(), flags.end());
    const ProgramRun run = run_regatta(all);
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(complaint({"--shard-size", "1TB"}), HasSubstr("--shard-size 1TB"));
  EXPECT_THAT(complaint({"--resize", "9"}), HasSubstr("not resized to 3x9x9"));
  EXPECT_THAT(complaint({"--part", "4/3"}), HasSubstr("--part 4/3: use K/N"));
  EXPECT_THAT(complaint({"--classes", "7"}), HasSubstr("has no class '7'"));
  EXPECT_THAT(complaint({"--to", "csv"}), HasSubstr("--to"));
  EXPECT_THAT(complaint({"--size", "4x4"}), HasSubstr("not resized to 3x4x4"));
  EXPECT_THAT(complaint({"--normalise", "bright"}), HasSubstr("normalisation 'bright'"));
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace regatta
