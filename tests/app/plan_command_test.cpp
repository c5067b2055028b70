// regatta plan: what it writes, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/node_plan.h"
#include "base/error.h"
#include "base/files.h"
#include "models/models.h"
#include "plan/plan_file.h"
#include "platform/machine.h"
#include "sim/fleet_plan.h"
#include "support/error_text.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"
#include "train/job.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

PlatformGroup group_of(const std::string& name, DeviceKind kind, double flops,
                       std::int64_t memory) {
  PlatformGroup group;
  group.name = name;
  group.kind = kind;
  group.count = 2;
  group.memory = memory;
  group.costs.flops = flops;
  if (kind == DeviceKind::cuda) group.bus = Bus{1e10, 1e10, 1e-5, ""};
  return group;
}

// A fast node, two slow ones, and one with two GPUs.
Platform unequal(std::int64_t memory = std::int64_t{1} << 34) {
  Platform platform;
  platform.name = "unequal";
  const auto node = [&](const std::string& name, int count, double flops) {
    PlatformNode made;
    made.name = name;
    made.count = count;
    made.groups = {group_of("cpu", DeviceKind::cpu, flops, memory)};
    return made;
  };
  platform.nodes = {node("fast", 1, 3e10), node("slow", 2, 1e10), node("box", 1, 1e10)};
  platform.nodes.back().groups.push_back(group_of("gpu", DeviceKind::cuda, 1e11, memory));
  platform.network.link = {1e9, 1e-6};
  return platform;
}

Recipe recipe_of(std::int64_t batch) {
  Recipe recipe;
  recipe.model = "lenet5";
  recipe.input = Shape{1, 28, 28};
  recipe.classes = 10;
  recipe.batch = batch;
  return recipe;
}

const Graph& lenet5() {
  static const Graph graph = fuse(build_model("lenet5"));
  return graph;
}

TEST(NodePlan, SharesBySpeedReachEverySynchronisationTogether) {
  app::NodeOptions options;
  options.nodes = {"fast", "slow-0", "slow-1", "box"};
  const Platform platform = unequal();
  const Plan plan = app::plan_over_nodes(lenet5(), recipe_of(1000), platform, {}, options);
  EXPECT_EQ(faults(plan, lenet5(), 1000), std::vector<std::string>{});
  // Cores of 2 x 30 and 2 x 10 GFLOP/s, GPUs of 100, each a rank of its own.
  const std::vector<double> speeds{6e10, 2e10, 2e10, 1e11, 1e11};
  ASSERT_EQ(plan.nodes.size(), speeds.size());
  std::vector<std::int64_t> shares;
  for (const PlanNode& node : plan.nodes) shares.push_back(share_of(node));
  double first = 1e9, last = 0;
  for (std::size_t n = 0; n < shares.size(); ++n) {
    first = std::min(first, static_cast<double>(shares[n]) / speeds[n]);
    last = std::max(last, static_cast<double>(shares[n]) / speeds[n]);
  }
  EXPECT_LT((last - first) / last, 0.05);
  EXPECT_EQ(plan.nodes[3].name, "box");
  EXPECT_EQ(plan.nodes[3].groups[0].kind, DeviceKind::cuda);
  EXPECT_EQ(plan.nodes[4].name, "box");
  EXPECT_EQ(plan.nodes[4].groups[0].name, "gpu-1");
  sim::PreparedFleet fleet(lenet5(), recipe_of(1000), platform, {});
  fleet.follow(plan);
  const std::vector<double> seconds = app::seconds_to_gradients(plan, fleet);
  ASSERT_EQ(seconds.size(), 5u);
  EXPECT_LT(1 - std::ranges::min(seconds) / std::ranges::max(seconds), 0.05);
  EXPECT_EQ(plan.platform, platform.fingerprint());
}

// The platform is a box with two GPUs and two cores.
TEST(NodePlan, DevicesSayWhoComputes) {
  app::NodeOptions options;
  options.nodes = {"box"};
  const auto planned = [&](std::optional<app::Devices> devices) {
    options.devices = devices;
    return app::plan_over_nodes(lenet5(), recipe_of(300), unequal(), {}, options);
  };
  const Plan both = planned(app::Devices::both);
  ASSERT_EQ(both.nodes.size(), 2u) << "cores go with the first GPU";
  ASSERT_EQ(both.nodes[0].groups.size(), 2u);
  EXPECT_EQ(both.nodes[0].groups[0].kind, DeviceKind::cpu);
  EXPECT_NEAR(static_cast<double>(share_of(both.nodes[0].groups[0])), 27, 5);
  EXPECT_EQ(groups_of(planned(app::Devices::cpu)).size(), 1u);
  EXPECT_EQ(groups_of(planned(app::Devices::cuda)).size(), 2u);
  options.nodes = {"fast"};
  EXPECT_THAT(error_text([&] { planned(app::Devices::cuda); }), HasSubstr("have no GPU"));
}

// What the cores of a GPU's node are for is decided by what they add and what it costs.
TEST(NodePlan, RolesAreDecidedByCosts) {
  app::NodeOptions options;
  options.nodes = {"box"};
  Platform platform = unequal();
  const auto cores = [&](double flops) {
    platform.nodes.back().groups.front().costs.flops = flops;
    const app::NodePlan made =
        app::planned_over_nodes(lenet5(), recipe_of(4000), platform, {}, options);
    for (const GroupRole& each : made.roles) {
      if (each.node == "fast") {
        EXPECT_EQ(each.role, Role::rest);
      }
      if (each.node == "box" && each.group == "gpu") {
        EXPECT_EQ(each.role, Role::compute);
      }
    }
    return *std::ranges::find_if(made.roles, [](const GroupRole& each) {
      return each.node == "box" && each.group == "cpu";
    });
  };
  const GroupRole strong = cores(1e11), weak = cores(1e5);
  EXPECT_EQ(strong.role, Role::compute) << strong.reason;
  EXPECT_THAT(strong.reason, HasSubstr("2 cores add "));
  EXPECT_EQ(weak.role, Role::load) << weak.reason;
  EXPECT_THAT(weak.reason, HasSubstr("they load"));
}

TEST(NodePlan, SharesCanBeEqualOrGiven) {
  app::NodeOptions options;
  options.nodes = {"fast", "slow-0"};
  options.shares = "equal";
  EXPECT_EQ(
      share_of(
          app::plan_over_nodes(lenet5(), recipe_of(100), unequal(), {}, options).nodes.front()),
      50);
  options.shares = "90,10";
  EXPECT_EQ(
      share_of(
          app::plan_over_nodes(lenet5(), recipe_of(100), unequal(), {}, options).nodes.front()),
      90);
  options.nodes = {"fast", "nowhere"};
  EXPECT_THAT(
      error_text([&] { app::plan_over_nodes(lenet5(), recipe_of(100), unequal(), {}, options); }),
      HasSubstr("no node 'nowhere'"));
}

// The fast node could do three quarters of the batch, but has memory for less.
TEST(NodePlan, SharesBySpeedFitIntoMemory) {
  app::NodeOptions options;
  options.nodes = {"fast", "slow-0"};
  Platform platform = unequal();
  const auto planned = [&] {
    const Plan plan = app::plan_over_nodes(lenet5(), recipe_of(400), platform, {}, options);
    app::require_memory(lenet5(), plan, recipe_of(400), platform);
    return std::pair(share_of(plan.nodes[0]), share_of(plan.nodes[1]));
  };
  const auto [most, rest] = planned();
  EXPECT_NEAR(static_cast<double>(most), 300, 15);
  // What a plan with 200 samples for each needs.
  options.shares = "equal";
  sim::PreparedFleet fleet(lenet5(), recipe_of(400), platform, {});
  fleet.follow(app::plan_over_nodes(lenet5(), recipe_of(400), platform, {}, options));
  options.shares = "speed";
  platform.nodes[0].groups[0].memory = static_cast<std::int64_t>(fleet.memory(0).front().bytes);
  const auto [fewer, more] = planned();
  EXPECT_NEAR(static_cast<double>(fewer), 200, 2);
  EXPECT_EQ(fewer + more, 400);
}

TEST(NodePlan, TooLittleMemoryIsToldWithTheLargestConsumers) {
  app::NodeOptions options;
  options.nodes = {"fast", "slow-0"};
  const Platform small = unequal(100'000);
  const Plan plan = app::plan_over_nodes(lenet5(), recipe_of(64), small, {}, options);
  const std::string text =
      error_text([&] { app::require_memory(lenet5(), plan, recipe_of(64), small); });
  EXPECT_THAT(text, HasSubstr("'fast/cpu' needs"));
  EXPECT_THAT(text, HasSubstr("'slow-0/cpu' needs"));
  EXPECT_THAT(text, HasSubstr("most of it for"));
  EXPECT_THAT(text, HasSubstr("it holds 0 of its"));
  app::require_memory(lenet5(), plan, recipe_of(64), unequal());
}

// Half of what a share needs holds fewer samples than the share, and the plan with those fits.
TEST(NodePlan, AShareThatDoesNotFitIsToldTheLargestThatDoes) {
  app::NodeOptions options;
  options.nodes = {"fast", "slow-0"};
  options.shares = "90,10";
  const auto planned = [&](const Platform& platform) {
    return app::plan_over_nodes(lenet5(), recipe_of(100), platform, {}, options);
  };
  Platform platform = unequal();
  sim::PreparedFleet fleet(lenet5(), recipe_of(100), platform, {});
  fleet.follow(planned(platform));
  platform.nodes[0].groups[0].memory =
      static_cast<std::int64_t>(fleet.memory(fleet.fleet().ranks[0].kind).front().bytes / 2);
  const std::string text = error_text(
      [&] { app::require_memory(lenet5(), planned(platform), recipe_of(100), platform); });
  const std::size_t at = text.find("it holds ");
  ASSERT_NE(at, std::string::npos) << text;
  const std::int64_t most = std::stoll(text.substr(at + 9));
  EXPECT_GT(most, 0);
  EXPECT_LT(most, 90);
  options.shares = std::to_string(most) + "," + std::to_string(100 - most);
  EXPECT_NO_THROW(app::require_memory(lenet5(), planned(platform), recipe_of(100), platform));
  options.shares = std::to_string(most + 1) + "," + std::to_string(99 - most);
  EXPECT_THROW(app::require_memory(lenet5(), planned(platform), recipe_of(100), platform),
               InputError);
}

TEST(NodePlan, StagesAreGivenByHand) {
  const std::vector<Stage> stages = app::parse_stages("a/cpu=0-3,b/gpu-1=4");
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0], (Stage{"a", "cpu", 0, 3}));
  EXPECT_EQ(stages[1], (Stage{"b", "gpu-1", 4, 4}));
  for (const char* bad : {"", "a=0-3", "a/cpu", "a/cpu=x", "a/cpu=1-"})
    EXPECT_THROW(app::parse_stages(bad), InputError) << bad;
}

TEST(NodePlan, StagesTakeTheBatchInChunksOfAllTheirCores) {
  app::NodeOptions options;
  const Plan plan = app::plan_over_stages(lenet5(), recipe_of(64), unequal(),
                                          app::parse_stages("box/gpu-1=0-2,fast/cpu=3-4"), options);
  require_valid(plan, lenet5(), 64);
  ASSERT_EQ(groups_of(plan).size(), 2u);
  const DeviceGroup& gpu = *groups_of(plan)[0];
  const DeviceGroup& cpu = *groups_of(plan)[1];
  EXPECT_EQ(gpu.chunks, std::vector<std::int64_t>(8, 8));
  EXPECT_EQ(cpu.chunks, gpu.chunks);
  EXPECT_EQ(cpu.workers, 1);
  EXPECT_EQ(cpu.team, 2);
  EXPECT_GT(plan.loaders, 0);
  options.plan.chunks = {{2}};
  for (const char* nobody : {"fast/gpu=0-4", "nowhere/cpu=0-4"})
    EXPECT_THAT(error_text([&] {
                  app::plan_over_stages(lenet5(), recipe_of(64), unequal(),
                                        app::parse_stages(nobody), options);
                }),
                HasSubstr("platform 'unequal' has no"));
}

TEST(NodePlan, StagesThatDoNotFitIntoMemoryAreToldWithTheLargestConsumers) {
  const std::vector<Stage> stages = app::parse_stages("fast/cpu=0-2,slow-1/cpu=3-4");
  const Platform small = unequal(100'000);
  const Plan plan = app::plan_over_stages(lenet5(), recipe_of(64), small, stages, {});
  const std::string text =
      error_text([&] { app::require_memory(lenet5(), plan, recipe_of(64), small); });
  EXPECT_THAT(text, HasSubstr("'fast/cpu' needs"));
  EXPECT_THAT(text, HasSubstr("most of it for"));
  EXPECT_THAT(text, HasSubstr("more stages"));
  app::require_memory(lenet5(), plan, recipe_of(64), unequal());
}

TEST(PlanCommand, PlacementsOverNodesAreWrittenAndSimulated) {
  const TemporaryFolder folder;
  const std::string platform = test_files() / "platforms/lab.json";
  for (const std::string placement : {"hybrid", "static"}) {
    const fs::path file = folder.path() / (placement + ".json"), result = folder.path() / "result";
    const ProgramRun planned =
        run_regatta({"plan", "--model", "lenet5", "--batch", "48", "--chunks", "4", "--segments",
                     "block", "--platform", platform, "--nodes", "elm,ash", "--placement",
                     placement, "--out", file.string()});
    ASSERT_EQ(planned.code, 0) << planned.err;
    const PlanFile plan = read_plan_file(file, graph_of_recipe);
    EXPECT_EQ(placement_name(plan.plan.placement), placement);
    std::size_t workers = 0;
    for (const DeviceGroup* group : groups_of(plan.plan))
      workers += static_cast<std::size_t>(group->workers);
    EXPECT_EQ(plan.plan.order.size(), placement == "static" ? workers : 0);
    const ProgramRun simulated = run_regatta({"simulate", file.string(), "--platform", platform,
                                              "--steps", "3", "--json", result.string()});
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    EXPECT_EQ(simulated.err, "");
    EXPECT_NEAR(read_json(result)["step_s"].get<double>(), plan.predicted->step.seconds, 1e-9);
  }
}

TEST(NodePlan, AStaticOrderIsFollowedOnEveryNode) {
  Platform platform = unequal();
  platform.network.link = {1e9, 1e-6};
  app::NodeOptions options;
  options.nodes = {"fast", "slow-0", "slow-1"};
  options.plan.segments = "block";
  options.plan.chunks = {{2}};
  const Recipe recipe = recipe_of(48);
  Plan plan = app::plan_over_nodes(lenet5(), recipe, platform, {}, options);
  sim::PreparedFleet free(lenet5(), recipe, platform, {});
  free.follow(plan);
  app::place_over_nodes(plan, Placement::fixed, free);
  ASSERT_EQ(plan.order.size(), 3 * 2u);
  EXPECT_EQ(plan_of_node(plan, 1).order.size(), 2u);
  // Both workers of the second node change their tasks: so does who runs them, and nothing else.
  std::swap(plan.order[2], plan.order[3]);
  require_valid(plan, lenet5(), 48);
  sim::PreparedFleet fleet(lenet5(), recipe, platform, {});
  fleet.follow(plan);
  const sim::Simulated made = sim::simulate(fleet.fleet(), {.steps = 2});
  // By worker: when it began which forwards and backwards of the first step.
  for (std::size_t w = 0; w < 6; ++w) {
    std::vector<std::pair<trace::Time, std::string>> ran;
    for (const trace::Task& task : made.record.tasks) {
      const std::string& phases = made.record.kinds[static_cast<std::size_t>(task.kind)].phases;
      if (task.step == 1 && task.worker == static_cast<std::int32_t>(w) &&
          (phases.starts_with("forward") || phases.starts_with("backward")))
        ran.emplace_back(task.start, phases);
    }
    std::ranges::sort(ran);
    std::vector<std::string> expected;
    const auto& kind =
        fleet.fleet().kinds[static_cast<std::size_t>(fleet.fleet().ranks[w / 2].kind)];
    for (const std::uint32_t t : plan.order[w]) {
      const Phase phase = kind.list->tasks[t].actions.front().phase;
      if (phase == Phase::forward || phase == Phase::backward)
        expected.emplace_back(phase_name(phase));
    }
    ASSERT_EQ(ran.size(), expected.size()) << w;
    for (std::size_t i = 0; i < ran.size(); ++i)
      EXPECT_TRUE(ran[i].second.starts_with(expected[i])) << w << ", " << i;
  }
}

TEST(PlanCommand, PredictsAPipelineThatCanBeSimulatedButNotFollowed) {
  const TemporaryFolder folder;
  const fs::path platform = test_files() / "platforms/lab.json", file = folder.path() / "plan.json",
                 result = folder.path() / "result.json";
  const ProgramRun planned = run_regatta({"plan", "--model", "lenet5", "--batch", "16", "--chunks",
                                          "4", "--platform", platform.string(), "--stages",
                                          "oak/cpu=0-2,ash/cpu=3-4", "--out", file.string()});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const PlanFile plan = read_plan_file(file, graph_of_recipe);
  ASSERT_TRUE(plan.predicted.has_value());
  EXPECT_GT(plan.predicted->step.seconds, 0);
  EXPECT_LE(plan.predicted->step.low, plan.predicted->step.seconds);
  EXPECT_GT(plan.predicted->energy_j, 0);
  ASSERT_EQ(plan.predicted->groups.size(), 2u);
  for (const GroupPrediction& group : plan.predicted->groups) {
    EXPECT_GT(group.busy_s, 0);
    EXPECT_LT(group.busy_s, plan.predicted->step.seconds);
    EXPECT_GT(group.peak_bytes, 0);
  }
  EXPECT_EQ(plan.predicted->groups[1].node, "ash");

  const ProgramRun simulated = run_regatta(
      {"simulate", file.string(), "--platform", platform.string(), "--steps", "3", "--replicas",
       "3", "--json", result.string(), "--out", (folder.path() / "run").string()});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const Json json = read_json(result);
  EXPECT_NEAR(json["step_s"].get<double>(), plan.predicted->step.seconds, 1e-9);
  EXPECT_EQ(json["groups"].size(), 2u);
  EXPECT_EQ(json["batch"], 16);
  EXPECT_GT(json["exchanged_bytes"].get<double>(), 0);
  EXPECT_EQ(json["replicas"]["step_s"].size(), 3u);
  EXPECT_TRUE(fs::exists(folder.path() / "run" / "run.json"));

  const ProgramRun trained = run_regatta({"train", "--plan", file.string(), "--steps", "1"});
  EXPECT_EQ(trained.code, 2);
  EXPECT_THAT(trained.err, HasSubstr("it has stages, which can only be simulated"));
  EXPECT_EQ(std::ranges::count(trained.err, '\n'), 1);
}

TEST(PlanCommand, WritesAPlanThatTrainFollows) {
  if (available_cpus() < 2) GTEST_SKIP() << "the plan is for two CPUs";
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "plan.json", run = folder.path() / "run";
  const ProgramRun planned = run_regatta(
      {"plan", "--model", "lenet5", "--batch", "16", "--workers", "2", "--granularity", "fixed",
       "--segments", "block", "--chunks", "4", "--placement", "static", "--out", file.string()});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const PlanFile plan = read_plan_file(file, graph_of_recipe);
  EXPECT_EQ(plan.plan.order.size(), 2u);
  ASSERT_TRUE(plan.predicted.has_value());
  EXPECT_GT(plan.predicted->step.seconds, 0);
  EXPECT_GT(plan.predicted->groups.front().peak_bytes, 0);
  EXPECT_FALSE(plan.buckets.empty());
  const ProgramRun trained = run_regatta({"train", "--plan", file.string(), "--test", "none",
                                          "--steps", "16", "--trace", "--out", run.string()});
  ASSERT_EQ(trained.code, 0) << trained.err;
}

TEST(PlanCommand, ShareOfUnequalWorkersFollowsTheirSpeed) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "plan.json";
  const ProgramRun planned =
      run_regatta({"plan", "--model", "lenet5", "--batch", "30", "--workers", "2", "--granularity",
                   "fixed", "--slow", "1=2", "--shares", "speed", "--out", file.string()});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const PlanFile plan = read_plan_file(file, graph_of_recipe);
  const DeviceGroup& group = plan.plan.nodes.front().groups.front();
  EXPECT_EQ(group.chunks, (std::vector<std::int64_t>{20, 10}));
  EXPECT_EQ(group.slow, (std::vector<double>{1, 2}));
  EXPECT_EQ(plan.plan.placement, Placement::hybrid);
}

TEST(PlanCommand, MistakesLeaveNoFile) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "plan.json";
  const ProgramRun run = run_regatta(
      {"plan", "--model", "lenet5", "--batch", "4", "--nodes", "a", "--out", file.string()});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("--platform"));
  EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace regatta
