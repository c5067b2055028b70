// regatta plan --objective on one node with unequal cores: chunks sized by their speeds, and the
// bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "app/chunks_by_speed.h"
#include "app/optimized_plan.h"
#include "base/json.h"
#include "models/models.h"
#include "platform/machine.h"
#include "sim/simulate.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"
#include "tasks/cost_names.h"

namespace regatta::app {
namespace {

constexpr std::int64_t batch = 48;
// What every operator takes however few samples there are, and for each FLOP.
constexpr double fixed_s = 2e-4, flop_s = 5e-10;

const Graph& network() {
  static const Graph graph = fuse(build_model("lenet5"));
  return graph;
}

Recipe recipe() {
  Recipe recipe;
  recipe.model = "lenet5";
  recipe.input = Shape{1, 28, 28};
  recipe.classes = 10;
  recipe.batch = batch;
  recipe.data = "synth";
  return recipe;
}

// Two cores, the second so many times as slow.
Platform two_cores(double slow) {
  PlatformGroup cores{.name = "cpu", .count = 2, .memory = std::int64_t{1} << 34};
  cores.watts = {1, 11};
  cores.slow_cores = {.count = 1, .slow = slow, .active_watts = 5};
  cores.costs.profile = "measured";
  PlatformNode node;
  node.name = "n";
  node.groups = {cores};
  Platform platform;
  platform.name = "two cores";
  platform.nodes = {node};
  return platform;
}

NodeOptions options() {
  NodeOptions options;
  options.plan.layout = Layout::blocked16;
  return options;
}

// What is measured of each piece of the network's tasks: certain, and the same however many work.
struct Measured {
  sim::Profiles profiles;
  double fixed = 0, sample = 0;  // of forward and backward, on a core at full speed
};

// `dip`: of what it would be, the cost of a chunk of 24 samples.
Measured measured(double dip = 1) {
  std::vector<Observation> seen;
  Measured made;
  for (const char* segments : {"step", "block"})
    for (const int team : {1, 2}) {
      NodeOptions own = options();
      own.plan.segments = segments;
      own.plan.team = team;
      own.plan.chunks = {{2}};
      const Plan plan =
          plan_for_devices(network(), recipe(), two_cores(1), {{"n", "cpu", batch}}, own);
      const Blueprint blueprint =
          make_blueprint(network(), plan_of_node(plan, 0), numbers_of(recipe()), true);
      const CostNames names(blueprint, recipe().data, Pass::train);
      const bool counts = std::string(segments) == "step" && team == 1;
      std::set<std::string> known;
      for (const Task& task : lower(blueprint, ListKind::train).tasks)
        for (const Action& action : task.actions)
          for (const CostPiece& piece : names.pieces(action, batch / 2)) {
            if (!known.insert(piece.name->signature).second) continue;
            // Meetings, loads and updates cost next to nothing.
            const bool computes = runs_part(action.phase);
            const double fixed = computes ? fixed_s / team : 1e-7;
            const double each = computes ? piece.name->flops * flop_s / team : 1e-9;
            for (const double samples : {1, 2, 4, 8, 16, 24, 32, 48})
              for (int busy = 1; busy <= 2 / team; ++busy)
                for (int i = 0; i < 4; ++i) {
                  const double size =
                      of_chunk(action.phase) ? samples : piece.size * samples / (batch / 2.0);
                  seen.push_back(
                      {piece.name->signature, size, busy,
                       computes ? (samples == 24 ? dip : 1) * (fixed + each * samples) : 1e-7});
                }
            if (!counts || !computes) continue;
            made.fixed += fixed;
            made.sample += each;
          }
    }
  Profile profile;
  profile.learn(seen);
  made.profiles = {{"measured", std::make_shared<const Profile>(profile)}};
  return made;
}

const Measured& costs() {
  static const Measured made = measured();
  return made;
}

Optimized best(double slow, optimize::Objective objective,
               std::optional<Placement> placement = {}) {
  return optimized_plan(network(), recipe(), two_cores(slow), costs().profiles, options(),
                        {.objective = objective, .placement = placement});
}

// The last of both workers, with the best two chunks.
double by_hand(double slow) {
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t fast = 1; fast < batch; ++fast) {
    const auto chunk_s = [&](std::int64_t samples) {
      return costs().fixed + costs().sample * static_cast<double>(samples);
    };
    least = std::min(least, std::max(chunk_s(fast), slow * chunk_s(batch - fast)));
  }
  return least;
}

class UnequalCores : public testing::TestWithParam<int> {};

TEST_P(UnequalCores, HaveAChunkEachByTheirSpeeds) {
  const double slow = GetParam();
  const Optimized made = best(slow, optimize::Objective::time);
  const DeviceGroup& group = made.plan.nodes[0].groups[0];
  ASSERT_EQ(group.chunks.size(), 2u);
  EXPECT_GT(group.chunks[0], slow * 0.9 * static_cast<double>(group.chunks[1]));
  EXPECT_NE(made.plan.placement, Placement::dynamic) << "a chunk stays with its worker";
  EXPECT_NEAR(made.predicted.step_s / by_hand(slow), 1, 0.05);
  // Samples are whole and the slow worker's chunk has a fixed cost too: the bound knows both.
  EXPECT_LE(made.bound.step_s, made.predicted.step_s);
  EXPECT_LT(made.gap, 0.15);
  const Optimized shared = best(slow, optimize::Objective::time, Placement::dynamic);
  EXPECT_EQ(shared.plan.placement, Placement::dynamic);
  EXPECT_GT(shared.predicted.step_s, 1.2 * made.predicted.step_s) << "small equal chunks";
  EXPECT_DOUBLE_EQ(shared.bound.step_s, made.bound.step_s);
}

TEST_P(UnequalCores, NeedNoMoreJoulesThanWithoutSuchChunks) {
  const double slow = GetParam();
  const Optimized lean = best(slow, optimize::Objective::energy);
  for (const Optimized& other : {best(slow, optimize::Objective::energy, Placement::dynamic),
                                 best(slow, optimize::Objective::time)})
    EXPECT_LE(lean.predicted.energy_j, other.predicted.energy_j * (1 + 1e-9));
  EXPECT_LE(lean.bound.energy_j, lean.predicted.energy_j);
}

// The bound against every plan of two chunks or fewer on two workers, however they are placed.
TEST_P(UnequalCores, HaveABoundBelowAllPlansOfTwoChunks) {
  const double slow = GetParam();
  const Optimized made = best(slow, optimize::Objective::time);
  for (std::int64_t fast = 4; fast <= batch; fast += 4)
    for (const Placement placement : {Placement::dynamic, Placement::hybrid}) {
      NodeOptions own = options();
      own.plan.chunks = std::vector<std::int64_t>{1};
      Plan plan =
          plan_for_devices(network(), recipe(), two_cores(slow), {{"n", "cpu", batch}}, own);
      DeviceGroup& group = plan.nodes[0].groups[0];
      group.chunks = {fast};
      if (fast < batch) group.chunks.push_back(batch - fast);
      group.lanes = static_cast<int>(group.chunks.size());
      plan.placement = placement;
      sim::PreparedFleet fleet(network(), recipe(), two_cores(slow), costs().profiles);
      fleet.follow(plan);
      const sim::Simulated simulated = sim::simulate(fleet.fleet(), {.steps = 4});
      EXPECT_LE(made.bound.step_s, simulated.step_s.front()) << fast;
      EXPECT_LE(made.bound.energy_j, simulated.energy_j.front()) << fast;
    }
}

// Two chunks of 24 on two equal workers: a bound by the costs of 16 and 32 samples would be above.
TEST(BoundOfChunks, KnowsASizeThatIsCheaperThanThoseAroundIt) {
  const Measured dented = measured(0.7);
  const Platform equal = two_cores(1);
  const Optimized made = optimized_plan(network(), recipe(), equal, dented.profiles, options(),
                                        {.objective = optimize::Objective::time});
  NodeOptions halves = options();
  halves.plan.chunks = std::vector<std::int64_t>{2};
  sim::PreparedFleet fleet(network(), recipe(), equal, dented.profiles);
  fleet.follow(plan_for_devices(network(), recipe(), equal, {{"n", "cpu", batch}}, halves));
  EXPECT_LE(made.bound.step_s, sim::simulate(fleet.fleet(), {.steps = 4}).step_s.front());
}

INSTANTIATE_TEST_SUITE_P(Times, UnequalCores, testing::Values(2, 3));

TEST(ChunksBySpeed, StayWithTheNodesOfAPlanForSeveral) {
  Platform platform = two_cores(3);
  PlatformNode equal = platform.nodes.front();
  equal.name = "equal";
  equal.groups.front().slow_cores.reset();
  platform.nodes.front().count = 2;
  platform.nodes.push_back(equal);
  platform.network.link = {1e9, 1e-6};
  const Plan plan =
      plan_for_devices(network(), recipe(), platform,
                       {{"n-0", "cpu", 16}, {"n-1", "cpu", 16}, {"equal", "cpu", 16}}, options());
  const std::vector<SpeedChunks> made =
      chunks_by_speed(network(), recipe(), platform, costs().profiles, plan);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].plan.placement, Placement::hybrid);
  for (std::size_t n : {0, 1}) {
    const DeviceGroup& group = made[0].plan.nodes[n].groups[0];
    ASSERT_EQ(group.chunks.size(), 2u);
    EXPECT_EQ(group.chunks[0] + group.chunks[1], 16);
    EXPECT_GT(group.chunks[0], 2 * group.chunks[1]);
  }
  EXPECT_EQ(made[0].plan.nodes[2].groups[0].chunks, plan.nodes[2].groups[0].chunks);
  EXPECT_EQ(faults(made[0].plan, network(), batch), std::vector<std::string>{});
  // A plan for equal cores has none.
  const Plan alone =
      plan_for_devices(network(), recipe(), platform, {{"equal", "cpu", batch}}, options());
  EXPECT_TRUE(chunks_by_speed(network(), recipe(), platform, costs().profiles, alone).empty());
}

TEST(PlanOfUnequalCores, IsSimulatedAndCarriedOutAsItWasPlanned) {
  if (available_cpus() < 2) GTEST_SKIP() << "the plan is for two CPUs";
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  const Json group{{"name", "cpu"},
                   {"kind", "cpu"},
                   {"count", 2},
                   {"memory_bytes", std::int64_t{1} << 33},
                   {"watts", {{"idle", 0}, {"active", 30}}},
                   {"costs", {{"flops", 1e9}, {"uncertainty", 1.01}}},
                   {"slow_cores", {{"count", 1}, {"slow", 3}, {"active_watts", 10}}}};
  const Json node{{"name", "box"}, {"groups", Json::array({group})}};
  std::ofstream(at("box.json")) << Json{
      {"regatta_platform", 1},
      {"name", "box"},
      {"nodes", Json::array({node})}}.dump();
  const ProgramRun planned = run_regatta(
      {"plan", "--model", "lenet5", "--data", "synth:1x28x28/10@64", "--batch", "32", "--platform",
       at("box.json"), "--objective", "time", "--out", at("plan.json"), "--json", at("made.json")});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, testing::HasSubstr("sized by its speed (24 + 8 samples)"));
  const Json plan = read_json(folder.path() / "plan.json")["plan"];
  const std::vector<std::int64_t> chunks = plan["nodes"][0]["groups"][0]["chunks"];
  EXPECT_EQ(chunks, (std::vector<std::int64_t>{24, 8}));
  EXPECT_EQ(plan["placement"], "static");

  const ProgramRun simulated = run_regatta(
      {"simulate", at("plan.json"), "--platform", at("box.json"), "--json", at("simulated.json")});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const double predicted = read_json(folder.path() / "made.json")["predicted"]["step_s"];
  const double step = read_json(folder.path() / "simulated.json")["step_s"];
  EXPECT_NEAR(step / predicted, 1, 0.02);

  const ProgramRun trained =
      run_regatta({"train", "--plan", at("plan.json"), "--platform", at("box.json"), "--slow",
                   "1=3", "--steps", "2", "--test", "none", "--out", at("run")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Json carried_out = read_json(folder.path() / "run" / "run.json")["plan"];
  EXPECT_EQ(carried_out["nodes"][0]["groups"][0]["chunks"],
            plan["nodes"][0]["groups"][0]["chunks"]);
  EXPECT_EQ(carried_out["placement"], "static");
  EXPECT_EQ(carried_out["order"], plan["order"]);
}

}  // namespace
}  // namespace regatta::app
