#include "tasks/costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "models/models.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

const std::string data = "synth:1x28x28/10@64";

Blueprint blueprint_of(const Graph& graph, std::int64_t batch, PlanOptions options) {
  return make_blueprint(graph, plan_for(graph, batch, std::move(options)), {}, true);
}

// As if every piece had been timed and taken `each` seconds.
std::shared_ptr<const Profile> profile_of(const Blueprint& blueprint, double each) {
  std::vector<Observation> session;
  const CostNames names(blueprint, data, Pass::train);
  for (const Task& task : lower(blueprint, ListKind::train).tasks)
    for (const Action& action : task.actions)
      for (const CostPiece& piece :
           names.pieces(action, blueprint.chunks[action.chunk.value].capacity))
        for (int i = 0; i < 4; ++i) session.push_back({piece.name->signature, piece.size, 1, each});
  auto profile = std::make_shared<Profile>();
  profile->learn(session);
  return profile;
}

TEST(ProfileCosts, ATaskCostsWhatItsPiecesCost) {
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint blueprint =
      blueprint_of(graph, 64, {.workers = 2, .chunks = std::vector<std::int64_t>{2}});
  const ProfileCosts costs(blueprint, profile_of(blueprint, 1e-6), data);
  const CostNames names(blueprint, data, Pass::train);
  for (const Task& task : lower(blueprint, ListKind::train).tasks) {
    double expected = 0;
    for (const Action& action : task.actions)
      for (const CostPiece& piece : names.pieces(action, 32)) expected += piece.size > 0 ? 1e-6 : 0;
    EXPECT_NEAR(costs.of(task, 1).seconds, expected, 1e-3 * expected);
  }
}

// Where workers meet, what counts is how many hold the data, not how many are at work; a chunk's
// work is slower in company.
TEST(ProfileCosts, WhereWorkersMeetItCostsTheSameWithManyOrFewAtWork) {
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint blueprint =
      blueprint_of(graph, 64, {.workers = 2, .chunks = std::vector<std::int64_t>{2}});
  const CostNames names(blueprint, data, Pass::train);
  std::vector<Observation> session;
  const TaskList list = lower(blueprint, ListKind::train);
  for (const Task& task : list.tasks)
    for (const Action& action : task.actions)
      for (const CostPiece& piece : names.pieces(action, 32))
        for (const int busy : {1, 2})
          session.push_back({piece.name->signature, piece.size, busy, busy * 1e-6});
  const auto profile = std::make_shared<Profile>();
  profile->learn(session);
  const ProfileCosts costs(blueprint, profile, data);
  int met = 0, computed = 0;
  for (const Task& task : list.tasks) {
    const double alone = costs.of(task, 1).seconds, in_company = costs.of(task, 2).seconds;
    if (task.actions.front().phase == Phase::reduce) {
      ++met;
      EXPECT_EQ(alone, in_company);
      double pieces = 0;
      for (const Action& action : task.actions)
        pieces += static_cast<double>(names.pieces(action, 32).size());
      EXPECT_NEAR(alone, pieces * 2e-6, 1e-9);
    } else if (task.actions.front().phase == Phase::forward) {
      ++computed;
      EXPECT_NEAR(in_company, 2 * alone, 1e-9);
    }
  }
  EXPECT_GT(met, 0);
  EXPECT_EQ(computed, 2);
}

TEST(ProfileCosts, AGatheredLoadCostsWhatItCostsByItself) {
  const Graph graph = fuse(build_model("lenet5"));
  Plan plan = plan_for(graph, 64, {.workers = 2, .chunks = std::vector<std::int64_t>{2}});
  const Blueprint ahead = make_blueprint(graph, plan, {}, true);
  plan.gather_loads = true;
  const Blueprint gathered = make_blueprint(graph, plan, {}, true);
  const auto profile = profile_of(ahead, 1e-6);
  const auto all = [&](const Blueprint& blueprint) {
    const ProfileCosts costs(blueprint, profile, data);
    double seconds = 0;
    for (const Task& task : lower(blueprint, ListKind::train).tasks)
      seconds += costs.of(task, 2).seconds;
    return seconds;
  };
  EXPECT_NEAR(all(gathered), all(ahead), 1e-3 * all(ahead));
  const ProfileCosts costs(gathered, profile, data);
  EXPECT_GT(costs.measured_shares(lower(gathered, ListKind::train), 1).near_size, 0.99);
}

TEST(ProfileCosts, LevelsAreThoseOfTheGroupsPlaceAndWorkers) {
  const Graph graph = fuse(build_model("tiny"));
  const Blueprint blueprint =
      blueprint_of(graph, 8, {.workers = 3, .chunks = std::vector<std::int64_t>{3}});
  const CostNames names(blueprint, data, Pass::train);
  const auto profile = std::make_shared<Profile>();
  std::vector<Observation> session;
  for (int level = 1; level <= spread_levels; ++level)
    for (const int busy : {1, 5})
      session.push_back({spread_signature(names.setting(GroupId{0})), static_cast<double>(level),
                         busy, 1 + 0.01 * level * busy});
  profile->learn(session);
  const std::vector<double> levels = ProfileCosts(blueprint, profile, data).spread(GroupId{0});
  ASSERT_EQ(levels.size(), std::size_t{spread_levels});
  for (int level = 1; level <= spread_levels; ++level)
    EXPECT_NEAR(levels[static_cast<std::size_t>(level) - 1], 1 + 0.03 * level, 1e-9) << level;
  EXPECT_TRUE(ProfileCosts(blueprint, nullptr, data).spread(GroupId{0}).empty());
  const Blueprint alone = blueprint_of(graph, 8, {.workers = 1});
  double mean = 0;
  for (const double each : ProfileCosts(alone, profile, data).spread(GroupId{0}))
    mean += each / spread_levels;
  EXPECT_NEAR(mean, 1, 1e-9) << "who is alone takes what it costs";
}

TEST(ProfileCosts, WhatAnotherPlanTaughtHoldsForThisOne) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  const Blueprint one = blueprint_of(
      graph, 16, {.workers = 2, .chunks = std::vector<std::int64_t>{2}, .segments = "step"});
  const auto profile = profile_of(one, 1e-6);
  const Blueprint other = blueprint_of(
      graph, 16, {.workers = 2, .chunks = std::vector<std::int64_t>{2}, .segments = "op"});
  const ProfileCosts costs(other, profile, data);
  EXPECT_GT(costs.measured_shares(lower(other, ListKind::train), 1).near_size, 0.8);
}

// How many pieces of instructions and loads a step has, by the end of their names: "segment",
// "segment shared", or "" in a step of one segment.
std::map<std::string, int> marks_of(const Blueprint& blueprint) {
  const CostNames names(blueprint, data, Pass::train);
  std::map<std::string, int> found;
  for (const Task& task : lower(blueprint, ListKind::train).tasks)
    for (const Action& action : task.actions) {
      if (!of_chunk(action.phase) || action.phase == Phase::deliver) continue;
      for (const CostPiece& piece : names.pieces(action, 8)) {
        const CostName& name = *piece.name;
        EXPECT_EQ(of_segments(name.signature), !name.in_one_segment.empty()) << name.signature;
        EXPECT_FALSE(of_segments(name.in_one_segment));
        ++found[name.in_one_segment.empty()
                    ? ""
                    : name.signature.substr(name.in_one_segment.size() + 3)];
      }
    }
  return found;
}

TEST(ProfileCosts, WorkInSeveralSegmentsHasANameOfItsOwn) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  std::map<std::string, int> marks =
      marks_of(blueprint_of(graph, 16, {.workers = 2, .segments = "step"}));
  EXPECT_EQ(marks.size(), 1) << "none is marked";
  EXPECT_GT(marks[""], 100);
  marks = marks_of(blueprint_of(graph, 16, {.workers = 2, .segments = "block"}));
  EXPECT_EQ(marks.size(), 2) << "all are marked";
  EXPECT_GT(marks["segment shared"], 20);
  EXPECT_GT(marks["segment"], marks["segment shared"]) << "most of a block stays inside";
}

TEST(ProfileCosts, WorkInSegmentsTakesAsMuchLongerAsItDidWhereItWasMeasured) {
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint blueprint = blueprint_of(
      graph, 8, {.workers = 4, .chunks = std::vector<std::int64_t>{1}, .segments = "op"});
  const CostNames names(blueprint, data, Pass::train);
  const TaskList list = lower(blueprint, ListKind::train);
  const Task& task = *std::ranges::find_if(list.tasks, [&](const Task& each) {
    return each.actions.front().phase == Phase::backward && each.actions.size() == 1 &&
           names.pieces(each.actions.front(), 8).size() == 1;
  });
  const CostPiece piece = names.pieces(task.actions.front(), 8).front();
  ASSERT_FALSE(piece.name->in_one_segment.empty());
  const auto cost = [&](std::vector<Observation> session, int busy) {
    const auto profile = std::make_shared<Profile>();
    profile->learn(session);
    return ProfileCosts(blueprint, profile, data).of(task, busy).seconds;
  };
  std::vector<Observation> session;
  for (int i = 0; i < 4; ++i) {
    session.push_back({piece.name->in_one_segment, 8, 1, 1e-4});
    session.push_back({piece.name->in_one_segment, 8, 4, 2e-4});
  }
  EXPECT_NEAR(cost(session, 1), 1e-4, 1e-8) << "where it was never measured, as in one segment";
  std::vector<Observation> beside = session;
  for (int i = 0; i < 4; ++i)
    beside.push_back({segment_signature(piece.name->in_one_segment, false), 8, 4, 2.4e-4});
  EXPECT_NEAR(cost(beside, 4), 2.4e-4, 1e-8) << "what is not shared by blocks, as inside of one";
  std::vector<Observation> larger;
  for (int i = 0; i < 4; ++i) {
    larger.push_back({piece.name->in_one_segment, 1, 4, 1e-6});
    larger.push_back({piece.name->signature, 8, 4, 9e-4});
  }
  EXPECT_NEAR(cost(larger, 4), 9e-4, 1e-8) << "measured at this size, and the other far from it";
  for (int i = 0; i < 4; ++i) session.push_back({piece.name->signature, 8, 4, 3e-4});
  EXPECT_NEAR(cost(session, 4), 3e-4, 1e-8);
  EXPECT_NEAR(cost(session, 1), 1.5e-4, 1e-8);
  for (int i = 0; i < 4; ++i) session.push_back({piece.name->signature, 8, 4, 1});
  session.erase(session.begin() + 8, session.begin() + 12);
  EXPECT_NEAR(cost(session, 4), 6e-4, 1e-8) << "an accident is no cold memory";
  session.erase(session.begin(), session.begin() + 8);
  EXPECT_NEAR(cost(session, 4), 1, 1e-8) << "nothing to compare with";
  session.push_back({piece.name->in_one_segment, 8, 1, 1e-4});
  EXPECT_NEAR(cost(session, 4), 1, 1e-8) << "crowding is no cold memory";
}

TEST(ProfileCosts, ATaskIsSubmittedAfterThoseBeforeIt) {
  const Graph graph = fuse(build_model("tiny"));
  const RuntimeCosts runtime{.submission = 3, .dependency = 0.5};
  const Plan plan = plan_for(graph, 32, {.workers = 2, .chunks = std::vector<std::int64_t>{32}});
  const TaskList list = lower(make_blueprint(graph, plan, {}, true), ListKind::train);
  const std::vector<double> after = submitted_after(list, runtime);
  ASSERT_EQ(after.size(), list.tasks.size());
  double seconds = 0;
  for (std::size_t t = 0; t < after.size(); ++t) {
    seconds += 3 + 0.5 * static_cast<double>(list.tasks[t].accesses.size());
    EXPECT_DOUBLE_EQ(after[t], seconds) << t;
  }
}

TEST(ProfileCosts, WhatWasNeverMeasuredIsGuessedAndNotCalledKnown) {
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint blueprint = blueprint_of(graph, 64, {.workers = 1});
  const ProfileCosts costs(blueprint, nullptr, data);
  const TaskList list = lower(blueprint, ListKind::train);
  EXPECT_EQ(costs.measured_shares(list, 1).near_size, 0);
  const Estimate cost = costs.of(list.tasks.front(), 1);
  EXPECT_GT(cost.seconds, 1e-5);
  EXPECT_GT(cost.high / cost.low, 4);
}

TEST(ProfileCosts, SizesFarFromThoseMeasuredAreNotCalledKnown) {
  const Graph graph = fuse(build_model("lenet5"));
  const auto profile = profile_of(blueprint_of(graph, 4, {.workers = 1}), 1e-6);
  const Blueprint large = blueprint_of(graph, 512, {.workers = 1});
  EXPECT_LT(ProfileCosts(large, profile, data)
                .measured_shares(lower(large, ListKind::train), 1)
                .near_size,
            0.5);
}

TEST(ProfileCosts, LayersOfOneShapeShareANameAndOthersDoNot) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  const Blueprint blueprint = blueprint_of(graph, 8, {.workers = 1});
  const GradientFlow flow(graph);
  const auto name = [&](const char* node_name, Work work) {
    for (const Node& node : graph.nodes())
      if (node.name == node_name)
        return signature_of(graph, flow, {node.id, work}, Pass::train, KernelSetting{});
    return std::string("no such node");
  };
  EXPECT_EQ(name("layer1.0.conv1", Work::forward), name("layer1.1.conv1", Work::forward));
  EXPECT_NE(name("layer1.0.conv1", Work::forward), name("layer2.0.conv1", Work::forward));
  EXPECT_NE(name("layer1.0.conv1", Work::forward), name("layer1.0.conv1", Work::backward));
  EXPECT_NE(name("layer1.0.bn1", Work::statistics), name("layer1.0.bn1", Work::forward));
}

TEST(ProfileCosts, APlaceIsPartOfAName) {
  const Graph graph = fuse(build_model("tiny"));
  const GradientFlow flow(graph);
  const Instruction step{graph.logits(), Work::forward};
  const std::string here = signature_of(graph, flow, step, Pass::train, {});
  EXPECT_NE(here, signature_of(graph, flow, step, Pass::evaluate, {}));
  EXPECT_NE(here, signature_of(graph, flow, step, Pass::train, {.layout = Layout::blocked8}));
  EXPECT_NE(here, signature_of(graph, flow, step, Pass::train, {.team = 2}));
  EXPECT_NE(here, signature_of(graph, flow, step, Pass::train, {.device = "cuda"}));
  const Instruction first{NodeId{1}, Work::forward};
  EXPECT_NE(signature_of(graph, flow, first, Pass::train, {}),
            signature_of(graph, flow, first, Pass::train, {},
                         std::vector(graph.nodes().size(), Layout::nchw)));
}

TEST(ProfileCosts, AGpusTaskIsOnePiece) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  const Blueprint blueprint =
      blueprint_of(graph, 12, {.workers = 3, .devices = {DeviceKind::cuda}});
  const CostNames names(blueprint, data, Pass::train);
  const TaskList list = lower(blueprint, ListKind::train);
  ASSERT_TRUE(names.one_piece(list.tasks[1]));
  EXPECT_FALSE(names.one_piece(list.tasks[0]));
  Profile profile;
  profile.learn(
      std::vector<Observation>(4, {names.whole(list.tasks[1], 12).name->signature, 12, 1, 0.25}));
  const ProfileCosts costs(blueprint, std::make_shared<Profile>(profile), data);
  EXPECT_DOUBLE_EQ(costs.of(list.tasks[1], 1).seconds, 0.25);
}

TEST(ProfileCosts, AnsweringForAWholeListIsQuick) {
  const Graph graph = fuse(build_model("resnet50", {.input = Shape{3, 64, 64}}));
  const Blueprint blueprint = blueprint_of(
      graph, 64, {.workers = 4, .chunks = std::vector<std::int64_t>{16}, .segments = "op"});
  const TaskList list = lower(blueprint, ListKind::train);
  const auto profile = profile_of(blueprint, 1e-6);
  const auto begin = std::chrono::steady_clock::now();
  const ProfileCosts costs(blueprint, profile, data);
  double total = 0;
  for (const Task& task : list.tasks) total += costs.of(task, 4).seconds;
  EXPECT_GT(total, 0);
  // Some milliseconds; ten times that on a loaded machine.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace regatta
