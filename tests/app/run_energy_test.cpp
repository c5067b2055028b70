// Joules of a run: what is modelled, what is unknown, and that every figure says which it is.
#include "app/run_energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

TEST(RunEnergy, IsModelledByIdleAndActiveWatts) {
  PlatformGroup cores;
  cores.count = 4;
  cores.watts = {2, 10};
  // All idle for ten seconds, and twelve core-seconds of work.
  EXPECT_DOUBLE_EQ(*app::modelled_joules(cores, 10, 12), 2 * 4 * 10 + 8 * 12);
  cores.watts = {};
  EXPECT_FALSE(app::modelled_joules(cores, 10, 12)) << "no watts are no zero";
}

TEST(RunEnergy, WhatIsUnknownIsNoZero) {
  const app::GroupJoules package{"cpu package-0", 50, true, ""}, cores{"cpu", 30, false, ""},
      gpu{"gpu 0", std::nullopt, false, "no counter can be read"};
  const Json counted = app::to_json({package}, 2), mixed = app::to_json({package, cores}, 2),
             partly = app::to_json({package, gpu}, 2), nothing = app::to_json({}, 2);
  EXPECT_EQ(counted["source"], "measured");
  EXPECT_EQ(mixed["joules"], 80);
  EXPECT_EQ(mixed["source"], "modelled") << "the weakest of its parts";
  EXPECT_TRUE(partly["joules"].is_null());
  EXPECT_EQ(partly["source"], "unknown");
  EXPECT_TRUE(partly["groups"][1]["joules"].is_null());
  EXPECT_EQ(partly["groups"][0]["joules"], 50) << "what is known is told";
  EXPECT_EQ(nothing["source"], "unknown");
}

TEST(RunEnergy, IsInEveryResultOfARun) {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run", json = folder.path() / "result.json";
  const ProgramRun done = run_regatta({"train", "--model", "tiny", "--data", "synth:1x12x12/3@40",
                                       "--batch", "8", "--epochs", "2", "--granularity", "fixed",
                                       "--out", run.string(), "--json", json.string()});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json energy = read_json(json)["energy"];
  EXPECT_THAT((std::vector<std::string>{"measured", "modelled"}),
              testing::Contains(energy["source"].get<std::string>()));
  EXPECT_GT(energy["joules"].get<double>(), 0);
  EXPECT_FALSE(energy["groups"].empty());
  EXPECT_EQ(read_json(run / "run.json")["energy"], energy);
  std::ifstream metrics(run / "metrics.jsonl");
  std::string line, last;
  while (std::getline(metrics, line)) last = line;
  EXPECT_EQ(Json::parse(last)["energy"], energy);
}

}  // namespace
}  // namespace regatta
