// What the optimizer's model reckons with, against the plans that are made of its choices.
#include <gtest/gtest.h>

#include <set>

#include "app/optimized_candidate.h"
#include "models/models.h"
#include "tasks/cost_names.h"

namespace regatta::app {
namespace {

constexpr std::int64_t batch = 16;

// Nodes of two cores each.
Platform pairs(int nodes) {
  PlatformGroup cores{.name = "cpu", .count = 2, .memory = std::int64_t{1} << 34};
  cores.watts = {1, 5};
  cores.costs.profile = "measured";
  Platform platform;
  platform.name = "pairs";
  PlatformNode node;
  node.name = "n";
  node.count = nodes;
  node.groups = {cores};
  platform.nodes = {node};
  platform.network.link = {1e9, 1e-6};
  return platform;
}

Recipe recipe_of(const Graph& graph) {
  Recipe recipe;
  recipe.model = graph.name();
  recipe.input = graph.node(graph.input()).shape;
  recipe.classes = graph.classes();
  recipe.batch = batch;
  recipe.data = "synth";
  return recipe;
}

// Of single cores alone, in steps of one segment and by blocks: operators take a hundred times what
// a guess says.
sim::Profiles profiles_of_single_cores(const Graph& graph, const Recipe& recipe) {
  std::vector<Observation> seen;
  std::set<std::string> known;
  for (const char* segments : {"step", "block"}) {
    PlanOptions options{.workers = 2, .layout = Layout::blocked16};
    options.chunks = {2};
    options.segments = segments;
    const Blueprint blueprint =
        make_blueprint(graph, make_plan(graph, recipe, options), numbers_of(recipe), true);
    const TaskList list = lower(blueprint, ListKind::train);
    const CostNames names(blueprint, recipe.data, Pass::train);
    for (const Task& task : list.tasks)
      for (const Action& action : task.actions)
        for (const CostPiece& piece :
             names.pieces(action, blueprint.chunks[action.chunk.value].capacity)) {
          if (!known.insert(piece.name->signature).second) continue;
          const double one = piece.name->flops / 2e8 + piece.name->bytes / 5e9;
          for (const double size : {piece.size / 4, piece.size, 4 * piece.size})
            for (const int busy : {1, 2})
              seen.push_back({piece.name->signature, size, busy, 1e-6 + one * size});
        }
  }
  Profile profile;
  profile.learn(seen);
  return {{"measured", std::make_shared<const Profile>(profile)}};
}

class OptimizerCosts : public testing::Test {
 protected:
  Candidate best(int nodes) const {
    const Platform platform = pairs(nodes);
    const optimize::Problem problem =
        optimizer_problem(graph_, recipe_, platform, profiles_, options_);
    const auto choice = best_shares(problem, {{0, nodes, {{1, 0}}}}, optimize::Objective::time, {});
    return *candidate({graph_, recipe_, platform, profiles_, options_, problem}, *choice);
  }
  double guessed(const Plan& plan, int nodes) const {
    sim::PreparedFleet fleet(graph_, recipe_, pairs(nodes), profiles_);
    fleet.follow(plan);
    return guessed_share(fleet);
  }

  const Graph graph_ = fuse(build_model("lenet5"));
  const Recipe recipe_ = recipe_of(graph_);
  const sim::Profiles profiles_ = profiles_of_single_cores(graph_, recipe_);
  const NodeOptions options_ = [] {
    NodeOptions options;
    options.plan.layout = Layout::blocked16;
    return options;
  }();
};

TEST_F(OptimizerCosts, AreThoseOfThePlanThatOneDeviceAloneFollows) {
  const Candidate made = best(1);
  EXPECT_EQ(made.plan.nodes[0].groups[0].team, 1);
  EXPECT_NEAR(made.modelled.step_s / made.outcome.step_s, 1, 0.1);
  EXPECT_LT(guessed(made.plan, 1), 0.01);
}

TEST_F(OptimizerCosts, LetCoresWorkOneByOneWhereOnlyThatWasMeasured) {
  const Candidate made = best(2);
  for (const PlanNode& node : made.plan.nodes) EXPECT_EQ(node.groups[0].team, 1) << node.name;
  EXPECT_NEAR(made.modelled.step_s / made.outcome.step_s, 1, 0.1);
  EXPECT_LT(guessed(made.plan, 2), 0.01);
  // With teams nearly all would be guessed.
  Plan teams = made.plan;
  for (PlanNode& node : teams.nodes) {
    DeviceGroup& group = node.groups[0];
    group.chunks = {share_of(group)};
    group.workers = group.lanes = 1;
    group.team = 2;
  }
  EXPECT_GT(guessed(teams, 2), 0.5);
}

}  // namespace
}  // namespace regatta::app
