// regatta plan --objective, rent and advise: what they answer, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "platform/platform.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string gallery(const std::string& name) {
  return (test_files() / "platforms" / name).string();
}

class Planner {
 public:
  // The result of --json; the program must succeed.
  Json plan(const std::string& platform, const std::string& objective,
            std::vector<std::string> more = {}) {
    const ProgramRun run = run_plan(platform, objective, std::move(more));
    EXPECT_EQ(run.code, 0) << run.err;
    out = run.out;
    return run.code == 0 ? read_json(folder.path() / "result.json") : Json();
  }
  ProgramRun run_plan(const std::string& platform, const std::string& objective,
                      std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"plan",
                                       "--model",
                                       "lenet5",
                                       "--batch",
                                       "64",
                                       "--platform",
                                       platform,
                                       "--objective",
                                       objective,
                                       "--out",
                                       path("plan.json"),
                                       "--json",
                                       path("result.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_regatta(arguments);
  }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }

  TemporaryFolder folder;
  std::string out;
};

double step_of(const Json& result) { return result["predicted"]["step_s"]; }
double joules_of(const Json& result) { return result["predicted"]["energy_j"]; }

// One node for each, on a switch of 1 GB/s.
Json platform_of(const std::vector<Json>& nodes) {
  return {{"regatta_platform", 1},
          {"name", "made up"},
          {"energy_price", 0.3},
          {"nodes", nodes},
          {"network", {{"topology", "star"}, {"bandwidth", 1e9}, {"latency", 1e-6}}}};
}
Json node_of(const std::string& name, double flops, double idle, double active) {
  const Json group{{"name", "cpu"},
                   {"kind", "cpu"},
                   {"count", 1},
                   {"memory_bytes", std::int64_t{1} << 33},
                   {"watts", {{"idle", idle}, {"active", active}}},
                   {"costs", {{"flops", flops}, {"uncertainty", 1.1}}}};
  return {{"name", name}, {"groups", Json::array({group})}};
}
std::string written(const Planner& planner, const std::string& name, const Json& json) {
  std::ofstream(planner.path(name)) << json.dump();
  return planner.path(name);
}

TEST(PlanObjective, TellsAllThatItPromises) {
  Planner planner;
  const Json result = planner.plan(gallery("lab.json"), "time");
  for (const char* key :
       {"objective", "predicted", "bound", "gap", "devices", "exchange", "plan_s", "reasons"})
    EXPECT_TRUE(result.contains(key)) << key;
  for (const char* part : {"predicted", "bound"})
    for (const char* key : {"step_s", "energy_j", "cost"})
      EXPECT_TRUE(result[part].contains(key)) << part << " " << key;
  EXPECT_TRUE(result["predicted"]["cost"].is_null()) << "nothing has a price";
  std::int64_t samples = 0;
  for (const Json& device : result["devices"]) {
    for (const char* key : {"node", "device", "used", "role", "share", "finish_s", "energy_j"})
      EXPECT_TRUE(device.contains(key)) << key;
    samples += device["share"].get<std::int64_t>();
  }
  EXPECT_EQ(result["devices"].size(), 4u);
  EXPECT_EQ(samples, 64);
  EXPECT_GT(result["bound"]["step_s"].get<double>(), 0);
  EXPECT_LE(result["bound"]["step_s"].get<double>(), step_of(result));
  EXPECT_LE(result["bound"]["energy_j"].get<double>(), joules_of(result));
  EXPECT_THAT(planner.out, HasSubstr("proven bound"));
  // What was written can be simulated.
  EXPECT_EQ(
      run_regatta({"simulate", planner.path("plan.json"), "--platform", gallery("lab.json")}).code,
      0);
}

TEST(PlanObjective, SharesAreWholeGroupsWhereBatchNormHasThem) {
  const auto plan = [](Planner& planner, const std::string& batch) {
    return run_regatta({"plan", "--model", "resnet20", "--batch", batch, "--batch-norm", "group:16",
                        "--platform", gallery("lab.json"), "--objective", "time", "--images",
                        "1000", "--deadline", "100000", "--out", planner.path("plan.json"),
                        "--json", planner.path("result.json")});
  };
  Planner planner;
  const ProgramRun run = plan(planner, "160");
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = read_json(planner.path("result.json"));
  std::int64_t samples = 0, used = 0;
  for (const Json& device : result["devices"]) {
    EXPECT_EQ(device["share"].get<std::int64_t>() % 16, 0) << device["node"];
    samples += device["share"].get<std::int64_t>();
    used += device["used"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(samples, 160);
  EXPECT_GT(used, 1);
  EXPECT_EQ(result["images"], 1000);
  EXPECT_LE(result["bound"]["step_s"].get<double>(), step_of(result));
  EXPECT_EQ(
      run_regatta({"simulate", planner.path("plan.json"), "--platform", gallery("lab.json")}).code,
      0);
  const ProgramRun broken = plan(planner, "100");
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("--batch 100 is no multiple of --batch-norm group:16"));
}

TEST(PlanObjective, EnergyPlansUseNoMoreJoulesThanTimePlans) {
  for (const char* name : {"lab.json", "two-sites.json", "gpu-and-old.json"}) {
    Planner planner;
    const Json fast = planner.plan(gallery(name), "time"),
               lean = planner.plan(gallery(name), "energy");
    EXPECT_LE(joules_of(lean), joules_of(fast) * 1.000001) << name;
    // Only the best few choices by the model are simulated, and the model errs by a few percent.
    EXPECT_LE(step_of(fast), step_of(lean) * 1.02) << name;
    for (const Json& each : {fast, lean}) {
      EXPECT_LE(each["bound"]["step_s"].get<double>(), step_of(each)) << name;
      EXPECT_LE(each["bound"]["energy_j"].get<double>(), joules_of(each)) << name;
    }
  }
}

TEST(PlanObjective, IsAtLeastAsGoodAsAllDevicesTogetherAndEachAlone) {
  Planner planner;
  const double best = step_of(planner.plan(gallery("lab.json"), "time"));
  const auto by_hand = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"plan",
                                       "--model",
                                       "lenet5",
                                       "--batch",
                                       "64",
                                       "--platform",
                                       gallery("lab.json"),
                                       "--out",
                                       planner.path("other.json"),
                                       "--json",
                                       planner.path("other-result.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run_regatta(arguments).code, 0);
    return read_json(planner.path("other-result.json"))["predicted"]["step_s"].get<double>();
  };
  EXPECT_LE(best, by_hand({}) * 1.001);
  for (const char* node : {"oak", "ash", "elm", "fir"})
    EXPECT_LE(best, by_hand({"--nodes", node}) * 1.001) << node;
}

TEST(PlanObjective, FollowsPowerStatesThroughToTheSimulation) {
  Planner planner;
  Json node = node_of("box", 1e9, 5, 100);
  node["groups"][0]["states"] =
      Json::array({{{"name", "eco"}, {"speed", 0.5}, {"watts", {{"idle", 4}, {"active", 20}}}}});
  const std::string file = written(planner, "box.json", platform_of({node}));
  const Json fast = planner.plan(file, "time"), lean = planner.plan(file, "energy");
  EXPECT_FALSE(fast["devices"][0].contains("state"));
  EXPECT_EQ(lean["devices"][0]["state"], "eco");
  // Half as fast at a fifth of the watts.
  EXPECT_NEAR(step_of(lean) / step_of(fast), 2, 0.2);
  EXPECT_NEAR(joules_of(lean) / joules_of(fast), 0.4, 0.08);
  EXPECT_EQ(read_json(planner.path("plan.json"))["plan"]["nodes"][0]["groups"][0]["state"], "eco");
}

// Two fast cores and two that take twice as long for a third of the joules; idle, none draws any.
Json unequal_cores() {
  Json node = node_of("box", 1e9, 0, 30);
  Json& cores = node["groups"][0];
  cores["count"] = 4;
  cores["slow_cores"] = {{"count", 2}, {"slow", 2}, {"active_watts", 5}};
  return platform_of({node});
}

TEST(PlanObjective, LetsCoresThatNeedMoreJoulesRestIfTheDeadlineAllows) {
  Planner planner;
  const std::string file = written(planner, "unequal.json", unequal_cores());
  const Json fastest = planner.plan(file, "time");
  EXPECT_FALSE(fastest.contains("pace_s"));
  const Json unhurried = planner.plan(file, "energy");
  const double deadline = 1.4 * step_of(fastest);
  const Json hurried = planner.plan(file, "energy", {"--deadline", std::to_string(deadline)});
  EXPECT_LE(step_of(hurried), deadline);
  EXPECT_GT(hurried["pace_s"].get<double>(), 0.9 * step_of(fastest));
  EXPECT_THAT(planner.out, HasSubstr("its pace"));
  EXPECT_LT(joules_of(hurried), 0.95 * joules_of(fastest));
  EXPECT_LT(joules_of(unhurried), 0.8 * joules_of(hurried)) << "the slow cores alone";
  for (const Json* each : {&fastest, &hurried, &unhurried}) {
    EXPECT_LE((*each)["bound"]["step_s"].get<double>(), step_of(*each));
    EXPECT_LE((*each)["bound"]["energy_j"].get<double>(), joules_of(*each));
  }
  // The plan file has the pace, and its simulation takes as long and draws as much as predicted.
  planner.plan(file, "energy", {"--deadline", std::to_string(deadline)});
  const Json plan = read_json(planner.path("plan.json"))["plan"];
  EXPECT_EQ(plan["pace_s"], hurried["pace_s"]);
  EXPECT_EQ(plan["nodes"][0]["groups"][0]["powers"][3]["watts"], 5);
  const ProgramRun run = run_regatta({"simulate", planner.path("plan.json"), "--platform", file,
                                      "--json", planner.path("simulated.json")});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json simulated = read_json(planner.path("simulated.json"));
  EXPECT_NEAR(simulated["step_s"].get<double>() / step_of(hurried), 1, 0.1);
  EXPECT_NEAR(simulated["energy_j"].get<double>() / joules_of(hurried), 1, 0.1);
}

// Ninety-six nodes in racks of 24, with slow links and far more latency between racks than in them.
Json racks() {
  Json node = node_of("n", 1e9, 1, 10);
  node["count"] = 96;
  node["switch"] = "rack";
  Json platform = platform_of({node});
  platform["network"] = {{"topology", "fat_tree"},
                         {"bandwidth", 1e8},
                         {"latency", 2e-6},
                         {"switches",
                          {{{"name", "core"}},
                           {{"name", "rack"},
                            {"count", 4},
                            {"parent", "core"},
                            {"bandwidth", 1e10},
                            {"latency", 1e-5}}}}};
  return platform;
}

TEST(PlanObjective, OfRacksHasRingsInThemAndIsSimulatedAsItsModelSays) {
  Planner planner;
  const std::string file = written(planner, "racks.json", racks());
  const ProgramRun planned = run_regatta(
      {"plan", "--model", "lenet5", "--batch", "1536", "--platform", file, "--objective", "time",
       "--out", planner.path("plan.json"), "--json", planner.path("result.json")});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const Json result = read_json(planner.path("result.json"));
  EXPECT_EQ(result["exchange"]["update"], "hierarchical");
  EXPECT_FALSE(result["simulated"].get<bool>());
  EXPECT_GT(result["bound"]["step_s"].get<double>(), 0);
  const ProgramRun run =
      run_regatta({"simulate", planner.path("plan.json"), "--platform", file, "--json",
                   planner.path("simulated.json"), "--out", planner.path("simulated")});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json simulated = read_json(planner.path("simulated.json"));
  EXPECT_NEAR(simulated["step_s"].get<double>() / step_of(result), 1, 0.03);
}

TEST(PlanObjective, KeepsALimitOfJoulesByLettingCoresRest) {
  Planner planner;
  const std::string file = written(planner, "unequal.json", unequal_cores());
  const double fastest = joules_of(planner.plan(file, "time")),
               leanest = joules_of(planner.plan(file, "energy"));
  const double most = 0.4 * fastest + 0.6 * leanest;
  const Json result = planner.plan(file, "time", {"--joules", std::to_string(most)});
  EXPECT_LE(joules_of(result), most);
  EXPECT_TRUE(result.contains("pace_s")) << "without one it takes " << fastest << " J";
  // A run with placement hybrid cannot follow a pace, and without one no plan keeps to the joules.
  const ProgramRun refused =
      planner.run_plan(file, "time", {"--joules", std::to_string(most), "--placement", "hybrid"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no plan was found within the limits"));
}

TEST(PlanObjective, HasNoPaceWhereNoRunWouldKeepIt) {
  Planner planner;
  const std::string file = written(planner, "unequal.json", unequal_cores());
  const std::string deadline = std::to_string(1.4 * step_of(planner.plan(file, "time")));
  for (const auto& [flag, value] : std::map<std::string, std::string>{
           {"--placement", "hybrid"}, {"--reduction", "redux"}, {"--accumulate", "2"}}) {
    SCOPED_TRACE(flag);
    const Json made = planner.plan(file, "energy", {"--deadline", deadline, flag, value});
    EXPECT_FALSE(made.contains("pace_s"));
  }
}

TEST(PlanObjective, FixesAnOrderOnlyWhereRunsFollowIt) {
  Planner planner;
  const std::string file = written(planner, "unequal.json", unequal_cores());
  const auto placement = [&](std::vector<std::string> more) {
    planner.plan(file, "time", std::move(more));
    return read_json(planner.path("plan.json"))["plan"]["placement"].get<std::string>();
  };
  EXPECT_EQ(placement({}), "static");
  EXPECT_EQ(placement({"--accumulate", "2"}), "hybrid") << "an order is for steps of one batch";
  EXPECT_EQ(placement({"--placement", "dynamic"}), "dynamic");
  EXPECT_EQ(placement({"--placement", "hybrid"}), "hybrid");
  EXPECT_EQ(placement({"--placement", "static"}), "static");
}

TEST(PlanObjective, CountsNodesThatRestAsThePlatformSays) {
  Planner planner;
  Json spare = node_of("spare", 1e6, 50, 60);
  const std::string on =
      written(planner, "on.json", platform_of({node_of("box", 1e9, 5, 20), spare}));
  spare["unused_watts"] = 0;
  const std::string off =
      written(planner, "off.json", platform_of({node_of("box", 1e9, 5, 20), spare}));
  const Json with = planner.plan(on, "energy"), without = planner.plan(off, "energy");
  EXPECT_FALSE(with["devices"][1]["used"].get<bool>());
  EXPECT_NEAR(joules_of(with) - joules_of(without), 50 * step_of(with), 1e-6 * joules_of(with));
}

TEST(PlanObjective, RefusesWhatTheBoundForbids) {
  Planner planner;
  const auto refused = [&](const std::string& flag, const std::string& value) {
    const ProgramRun run = planner.run_plan(gallery("lab.json"), "energy", {flag, value});
    EXPECT_EQ(run.code, 2) << flag;
    return run.err;
  };
  EXPECT_THAT(refused("--deadline", "1e-9"), HasSubstr("--deadline 1e-09 s cannot be kept"));
  EXPECT_THAT(refused("--deadline", "1e-9"), HasSubstr("proven bound"));
  EXPECT_THAT(refused("--power-cap", "10"), HasSubstr("which nodes draw at rest"));
  EXPECT_THAT(refused("--joules", "1e-9"), HasSubstr("--joules 1e-09 J cannot be kept"));
  EXPECT_FALSE(fs::exists(planner.path("plan.json")));
  Json small = node_of("small", 1e9, 1, 2);
  small["groups"][0]["memory_bytes"] = 1000;
  const ProgramRun full =
      planner.run_plan(written(planner, "small.json", platform_of({small})), "time");
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.err, HasSubstr("memory of all devices together holds 0 samples"));
  const ProgramRun alone = run_regatta({"plan", "--model", "lenet5", "--deadline", "3"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("need --objective"));
  EXPECT_THAT(planner.run_plan(gallery("lab.json"), "time", {"--nodes", "oak"}).err,
              HasSubstr("drop --nodes"));
  // The default, too, when it is asked for.
  EXPECT_THAT(refused("--update", "ring"), HasSubstr("chooses devices, shares and exchange itself: "
                                                     "drop --update\n"));
}

TEST(PlanObjective, AsksForPricesBeforeItSpeaksOfMoney) {
  Planner planner;
  for (const ProgramRun& run : {planner.run_plan(gallery("lab.json"), "cost"),
                                planner.run_plan(gallery("lab.json"), "time", {"--money", "3"})}) {
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("'four unequal lab machines' has no price"));
  }
}

TEST(PlanObjective, KeepsADeadlineThatOneMachineAloneDoesNot) {
  Planner planner;
  const std::string file =
      written(planner, "pair.json",
              platform_of({node_of("lean", 1e8, 1, 5), node_of("fast", 1e9, 1, 200)}));
  const Json relaxed = planner.plan(file, "energy");
  EXPECT_FALSE(relaxed["devices"][1]["used"].get<bool>());
  const double deadline = 0.5 * step_of(relaxed);
  const Json hurried = planner.plan(file, "energy", {"--deadline", std::to_string(deadline)});
  EXPECT_TRUE(hurried["devices"][1]["used"].get<bool>());
  EXPECT_LE(step_of(hurried), deadline);
  EXPECT_GE(joules_of(hurried), joules_of(relaxed));
}

TEST(PlanObjective, WritesTheFrontAsTableCsvAndPicture) {
  Planner planner;
  const std::string file =
      written(planner, "pair.json",
              platform_of({node_of("lean", 1e8, 1, 5), node_of("fast", 1e9, 1, 200)}));
  for (const char* end : {"csv", "json", "svg"})
    planner.plan(file, "time", {"--pareto", planner.path(std::string("front.") + end)});
  EXPECT_THAT(planner.out, HasSubstr("front by the model"));
  const Json front = read_json(planner.path("front.json"))["points"];
  ASSERT_GT(front.size(), 2u);
  for (std::size_t i = 0; i < front.size(); ++i) {
    EXPECT_LE(front[i]["bound"].get<double>(), front[i]["energy_j"].get<double>() * 1.000001);
    if (i == 0) continue;
    EXPECT_GT(front[i]["step_s"].get<double>(), front[i - 1]["step_s"].get<double>());
    EXPECT_LT(front[i]["energy_j"].get<double>(), front[i - 1]["energy_j"].get<double>());
  }
  EXPECT_THAT(read_file(planner.path("front.csv")), HasSubstr("step_s,energy_j,cost,bound"));
  EXPECT_THAT(read_file(planner.path("front.svg")), HasSubstr("<svg"));
  const ProgramRun wrong = planner.run_plan(file, "time", {"--pareto", planner.path("front.png")});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr(".csv, .json or .svg"));
}

TEST(PlanObjective, SaysWhatWouldChange) {
  Planner planner;
  const Json result = planner.plan(gallery("two-sites.json"), "time",
                                   {"--what-if", "-3 x north", "--what-if", "batch 128"});
  ASSERT_EQ(result["what_if"].size(), 2u);
  EXPECT_EQ(result["what_if"][0]["change"], "-3 x north");
  EXPECT_GE(result["what_if"][0]["difference"]["step_s"].get<double>(), -1e-9)
      << "fewer machines are no faster";
  EXPECT_THAT(planner.out, HasSubstr("what if batch 128"));
  EXPECT_EQ(planner.run_plan(gallery("two-sites.json"), "time", {"--what-if", "nonsense"}).code, 2);
}

TEST(Rent, ComparesHoursJoulesAndMoney) {
  const Planner planner;
  Json own = node_of("own", 1e9, 10, 100), rented = node_of("rented", 1e10, 10, 100);
  own["price"] = {{"purchase", 1000}, {"lifetime_hours", 10000}};
  rented["price"] = {{"per_hour", 5}, {"minimum_hours", 1}};
  const std::string mine = written(planner, "own.json", platform_of({own}));
  const std::string cloud = written(planner, "cloud.json", platform_of({rented}));
  const ProgramRun run =
      run_regatta({"rent", "--model", "lenet5", "--images", "60000", "--epochs", "10", "--own",
                   mine, "--offer", cloud, "--json", planner.path("rent.json")});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = read_json(planner.path("rent.json"));
  const Json &here = result["own"], &there = result["offers"][0];
  const double hours = here["hours"]["value"];
  // 0.1 an hour of value lost, and 0.3 for a kilowatt-hour.
  EXPECT_NEAR(here["money"]["value"].get<double>(),
              0.1 * hours + 0.3 * here["joules"]["value"].get<double>() / 3.6e6, 1e-9);
  EXPECT_LT(there["hours"]["value"].get<double>(), hours);
  EXPECT_NEAR(there["money"]["value"].get<double>(),
              5 * std::max(1.0, there["hours"]["value"].get<double>()), 1e-9);
  EXPECT_EQ(there["cheaper"], "own");
  const double saved =
      there["money"]["value"].get<double>() - 0.3 * here["joules"]["value"].get<double>() / 3.6e6;
  EXPECT_NEAR(there["break_even_runs"].get<double>(), 1000 / saved, 1e-3);
  // Without a price nothing can be compared.
  const ProgramRun priceless = run_regatta(
      {"rent", "--model", "lenet5", "--images", "60000", "--offer", gallery("lab.json")});
  EXPECT_EQ(priceless.code, 2);
  EXPECT_THAT(priceless.err, HasSubstr("has no price"));
}

TEST(Advise, NamesTheLayersWhoseGradientsCostMoreThanTheirWork) {
  const Planner planner;
  const auto costly = [&](double bandwidth) {
    Json platform = platform_of({node_of("a", 1e12, 1, 2), node_of("b", 1e12, 1, 2)});
    platform["network"]["bandwidth"] = bandwidth;
    const std::string file = written(planner, "pair.json", platform);
    const ProgramRun run = run_regatta({"advise", "--model", "alexnet", "--platform", file,
                                        "--batch", "64", "--json", planner.path("advice.json")});
    EXPECT_EQ(run.code, 0) << run.err;
    const Json advice = read_json(planner.path("advice.json"));
    return advice["costly"].get<std::set<std::string>>();
  };
  const std::set<std::string> slow = costly(1.2e8), fast = costly(1e13);
  EXPECT_TRUE(slow.contains("classifier.1")) << "38 million weights of a dense layer";
  EXPECT_FALSE(slow.contains("features.3")) << "a convolution";
  EXPECT_TRUE(fast.empty());
}

}  // namespace
}  // namespace regatta
