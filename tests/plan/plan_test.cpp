#include "plan/plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "models/models.h"
#include "ops/builder.h"
#include "plan/make_plan.h"
#include "plan/segments.h"
#include "support/error_text.h"
#include "support/grouped.h"

namespace regatta {
namespace {

Recipe recipe_of(std::int64_t batch) {
  Recipe recipe;
  recipe.model = "tiny";
  recipe.input = Shape{1, 28, 28};
  recipe.classes = 10;
  recipe.batch = batch;
  return recipe;
}

TEST(Segments, ThoseToBeComputedAgainAreNamedByNumberOrAll) {
  const auto marked = [](std::size_t count, const std::string& choice) {
    std::vector<Segment> segments(count);
    mark_recomputed(segments, choice);
    std::string text;
    for (const Segment& segment : segments) text += segment.recomputed ? '1' : '0';
    return text;
  };
  EXPECT_EQ(marked(4, "all"), "1110");
  EXPECT_EQ(marked(4, "auto"), "0000");
  EXPECT_EQ(marked(4, "1"), "0100");
  EXPECT_EQ(marked(6, "0-1,3"), "110100");
  const auto refusal = [&](std::size_t count, const std::string& choice) {
    return error_text([&] { marked(count, choice); });
  };
  EXPECT_EQ(refusal(1, "all"),
            "--recompute all: the plan has one segment; cut it by --segments block or a number");
  EXPECT_EQ(refusal(4, "3"),
            "--recompute 3: its segments are counted from 0 to 3, and the last one's backward "
            "follows its forward at once");
  EXPECT_EQ(refusal(4, "2-1"), "--recompute 2-1: a range goes up, such as 0-3");
  for (const char* wrong : {"", "x", "0-", "0,", "0 1", "-1", "1-x"})
    EXPECT_EQ(refusal(4, wrong), std::string("--recompute ") + wrong +
                                     ": use auto, all, or segments counted from 0, such as 0-3,7");
}

TEST(Plan, SmallWorkStaysInOnePieceOnOneWorker) {
  const Graph graph = fuse(build_model("tiny"));
  const Plan plan = make_plan(graph, recipe_of(10), {.workers = 16});
  EXPECT_EQ(chunks_of(plan).size(), 1u);
  EXPECT_EQ(groups_of(plan).front()->workers, 1);
}

TEST(Plan, LargeWorkIsCutForEveryWorker) {
  const Graph graph = fuse(build_model("resnet18"));
  const Plan plan = make_plan(graph, recipe_of(32), {.workers = 4});
  EXPECT_EQ(chunks_of(plan).size(), 4u);
}

TEST(Plan, TeamsShareTheCpusAskedFor) {
  const Graph graph = fuse(build_model("resnet18"));
  const Plan plan = make_plan(graph, recipe_of(32), {.workers = 16, .team = 4});
  EXPECT_EQ(groups_of(plan).front()->workers, 4);
  EXPECT_EQ(groups_of(plan).front()->team, 4);
  EXPECT_EQ(chunks_of(plan).size(), 4u);
  const Plan alone = make_plan(graph, recipe_of(1), {.workers = 3, .team = 2});
  EXPECT_EQ(groups_of(alone).front()->workers, 1);
  EXPECT_EQ(groups_of(alone).front()->team, 2);
}

TEST(Plan, ATeamNeedsItsCpusAndIsNotForGpus) {
  const Graph graph = fuse(build_model("tiny"));
  for (const int team : {0, -1, 3})
    EXPECT_NE(error_text([&] {
                make_plan(graph, recipe_of(10), {.workers = 2, .team = team});
              }).find("--team " + std::to_string(team)),
              std::string::npos);
  Plan plan = make_plan(graph, recipe_of(10), {.workers = 1});
  plan.nodes[0].groups[0].team = 1'000'000;
  EXPECT_EQ(faults(plan, graph, 10).size(), 1u);
  plan.nodes[0].groups[0].team = 2;
  EXPECT_TRUE(faults(plan, graph, 10).empty());
  plan.nodes[0].groups[0].kind = DeviceKind::cuda;
  plan.nodes[0].groups[0].layout = Layout::nhwc;
  plan.loaders = 1;
  EXPECT_EQ(faults(plan, graph, 10).size(), 1u);
}

TEST(Plan, DeterministicChunksDoNotAskForTheNumberOfWorkers) {
  const Graph graph = fuse(build_model("resnet18"));
  const Plan one = make_plan(graph, recipe_of(32), {.workers = 1, .deterministic = true});
  const Plan many = make_plan(graph, recipe_of(32), {.workers = 64, .deterministic = true});
  EXPECT_EQ(groups_of(one).front()->chunks, groups_of(many).front()->chunks);
  EXPECT_EQ(groups_of(one).front()->lanes, groups_of(many).front()->lanes);
}

TEST(Plan, ReportsEveryBrokenInvariant) {
  const Graph graph = fuse(build_model("tiny"));
  Plan plan = make_plan(graph, recipe_of(10), {.workers = 1});
  plan.nodes[0].groups[0].chunks = {4, 0};
  plan.nodes[0].groups[0].workers = 0;
  plan.segments.pop_back();
  plan.steps_in_flight = 0;
  EXPECT_EQ(faults(plan, graph, 10).size(), 6u);
  EXPECT_THROW(require_valid(plan, graph, 10), InputError);
}

TEST(Plan, ChunksAreWholeGroupsOfSamples) {
  const Graph graph = grouped(fuse(build_model("resnet18")), 16);
  EXPECT_EQ(groups_of(make_plan(graph, recipe_of(72), {.workers = 4})).front()->chunks,
            (std::vector<std::int64_t>{16, 16, 16, 24}));
  EXPECT_EQ(groups_of(make_plan(graph, recipe_of(24), {.workers = 4})).front()->chunks,
            (std::vector<std::int64_t>{16, 8}))
      << "the batch's last group is short";
  EXPECT_EQ(error_text([&] { make_plan(graph, recipe_of(72), {.workers = 4, .chunks = {{6}}}); }),
            "--chunks 6: use 1 to 5, the batch norm's groups of 16 samples, or a list of sizes");
  Plan plan = make_plan(graph, recipe_of(72), {.workers = 4, .chunks = {{32, 32, 8}}});
  EXPECT_TRUE(faults(plan, graph, 72).empty());
  plan.nodes[0].groups[0].chunks = {32, 8, 32};
  EXPECT_EQ(faults(plan, graph, 72),
            std::vector<std::string>{
                "a chunk of 8 samples of group 'cpu' breaks up batch norm's groups: all chunks but "
                "the batch's last are multiples of 16"});
}

TEST(Plan, SurvivesItsJson) {
  const Graph graph = fuse(build_model("lenet5"));
  PlanOptions options{
      .workers = 3, .team = 2, .chunks = std::vector<std::int64_t>{3, 7}, .segments = "block"};
  options.reduction = Reduction::loop;
  const Plan plan = make_plan(graph, recipe_of(10), options);
  const Plan back = plan_from_json(Json::parse(to_json(plan, graph).dump()), graph);
  EXPECT_EQ(to_json(back, graph), to_json(plan, graph));
}

TEST(Plan, GatheredLoadsSurviveTheJsonAndAreAbsentFromOlderFiles) {
  const Graph graph = fuse(build_model("lenet5"));
  Plan plan = make_plan(graph, recipe_of(10), {.workers = 2});
  EXPECT_FALSE(to_json(plan, graph).contains("gather_loads"));
  EXPECT_FALSE(plan_from_json(to_json(plan, graph), graph).gather_loads);
  plan.gather_loads = true;
  EXPECT_TRUE(plan_from_json(to_json(plan, graph), graph).gather_loads);
  Json json = to_json(plan, graph);
  json["gather_loads"] = "yes";
  EXPECT_NE(error_text([&] { plan_from_json(json, graph); }).find("gather_loads"),
            std::string::npos);
}

TEST(Plan, ASplitBackwardSurvivesTheJsonAndIsAbsentFromOlderFiles) {
  const Graph graph = fuse(build_model("lenet5"));
  Plan plan = make_plan(graph, recipe_of(10), {.workers = 2});
  EXPECT_FALSE(to_json(plan, graph).contains("backward"));
  EXPECT_EQ(plan_from_json(to_json(plan, graph), graph).backward, Backward::whole);
  plan.backward = Backward::split;
  Json json = to_json(plan, graph);
  EXPECT_EQ(json["backward"], "split");
  EXPECT_EQ(plan_from_json(json, graph).backward, Backward::split);
  json["backward"] = "halved";
  EXPECT_NE(error_text([&] { plan_from_json(json, graph); }).find("use whole or split"),
            std::string::npos);
}

TEST(Plan, WhetherItsThreadsTakeAllCpusFollowsFromThem) {
  const Graph graph = fuse(build_model("lenet5"));
  const auto plan_of = [&](const PlanOptions& options) {
    return make_plan(graph, recipe_of(64), options);
  };
  EXPECT_TRUE(takes_all_cpus(plan_of({.workers = 4, .cpus = 4})));
  EXPECT_TRUE(takes_all_cpus(plan_of({.workers = 4, .cpus = 4, .team = 2})));
  EXPECT_FALSE(takes_all_cpus(plan_of({.workers = 3, .cpus = 4})));
  EXPECT_FALSE(takes_all_cpus(plan_of({.workers = 4})));
  EXPECT_FALSE(to_json(plan_of({.workers = 4}), graph).contains("cpus"));
  Plan plan = plan_from_json(to_json(plan_of({.workers = 4, .cpus = 4}), graph), graph);
  EXPECT_TRUE(takes_all_cpus(plan));
  plan.nodes.front().groups.front().workers = 3;  // as --resume with other --workers does
  EXPECT_FALSE(takes_all_cpus(plan));
}

TEST(Plan, OfVersion1SaysThatWorkersSubmit) {
  const Graph graph = fuse(build_model("lenet5"));
  Json json = to_json(make_plan(graph, recipe_of(64), {.workers = 4}), graph);
  json["regatta_plan"] = 1;
  EXPECT_FALSE(takes_all_cpus(plan_from_json(json, graph)));
  json["workers_submit"] = false;
  EXPECT_FALSE(takes_all_cpus(plan_from_json(json, graph)));
  json["workers_submit"] = true;
  EXPECT_TRUE(takes_all_cpus(plan_from_json(json, graph)));
}

TEST(Plan, OnlyOurSchedulerFollowsAPlacement) {
  const Graph graph = fuse(build_model("lenet5"));
  Plan plan = make_plan(graph, recipe_of(64), {.workers = 2, .scheduler = "lws"});
  EXPECT_TRUE(hindrances(plan).empty());
  plan.placement = Placement::hybrid;
  EXPECT_TRUE(faults(plan, graph, 64).empty());  // it may be simulated
  EXPECT_EQ(hindrances(plan),
            std::vector<std::string>{"--placement hybrid needs --scheduler regatta, not lws"});
}

TEST(Plan, AProcessComputesOnOneGpu) {
  const Graph graph = fuse(build_model("tiny"));
  Plan plan = make_plan(graph, recipe_of(10), {.workers = 2, .devices = {DeviceKind::cuda}});
  EXPECT_TRUE(hindrances(plan).empty());
  plan.nodes[0].groups[0].chunks = {5};
  plan.nodes[0].groups.push_back(plan.nodes[0].groups[0]);
  EXPECT_TRUE(faults(plan, graph, 10).empty());  // it may be simulated
  ASSERT_EQ(hindrances(plan).size(), 1u);
  EXPECT_NE(hindrances(plan)[0].find("it has 2 GPUs on node"), std::string::npos);
}

TEST(Plan, LoadersAreForAGpuAlone) {
  const Graph graph = fuse(build_model("tiny"));
  PlanOptions options{.workers = 4, .loaders = 3, .devices = {DeviceKind::cuda}};
  EXPECT_EQ(make_plan(graph, recipe_of(10), options).loaders, 3);
  options.devices = {DeviceKind::cpu};
  EXPECT_NE(error_text([&] {
              make_plan(graph, recipe_of(10), options);
            }).find("--loaders is for a GPU alone"),
            std::string::npos);
  options.devices_open = true;  // the cores were not asked for by name
  EXPECT_EQ(make_plan(graph, recipe_of(10), options).loaders, 0);
}

TEST(Plan, LoadsAreGatheredWithTheWorkOfCpusOnly) {
  const Graph graph = fuse(build_model("tiny"));
  Plan plan = make_plan(graph, recipe_of(10), {.workers = 2, .devices = {DeviceKind::cuda}});
  EXPECT_TRUE(faults(plan, graph, 10).empty());
  plan.gather_loads = true;
  EXPECT_EQ(faults(plan, graph, 10).size(), 1u);
}

TEST(Plan, SlowedWorkersAreHalfTheCompany) {
  const Graph graph = fuse(build_model("tiny"));
  Plan plan = make_plan(graph, recipe_of(12), {.workers = 3, .chunks = std::vector{3L}});
  EXPECT_EQ(contention_of(plan), (std::vector<double>{1, 1, 1}));
  plan.nodes[0].groups[0].slow = {1, 2, 2};
  EXPECT_EQ(contention_of(plan), (std::vector<double>{0.5, 0.75, 0.75}));
}

TEST(Plan, PowersAreOneForEachCpuWorkerAndAPaceNeedsThem) {
  const Graph graph = fuse(build_model("tiny"));
  Plan plan = make_plan(graph, recipe_of(12), {.workers = 2, .chunks = std::vector{2L}});
  plan.pace_s = 1;
  EXPECT_EQ(faults(plan, graph, 12).size(), 1u) << "a pace without powers";
  DeviceGroup& group = plan.nodes[0].groups[0];
  group.powers = {{.slow = 1, .watts = 7}};
  EXPECT_EQ(faults(plan, graph, 12).size(), 1u) << "of one worker only";
  group.powers.push_back({.slow = 4, .watts = 1});
  EXPECT_TRUE(faults(plan, graph, 12).empty());
  EXPECT_EQ(full_workers(group), 1.25);
  group.slow = {2, 3};
  EXPECT_EQ(powers_of(plan), (std::vector<WorkerPower>{{2, 7}, {4, 1}})) << "whichever is slower";
  plan.scheduler = "lws";
  EXPECT_EQ(faults(plan, graph, 12).size(), 1u) << "StarPU's schedulers know no pace";
}

TEST(Plan, NamesWhatIsWrongInItsJson) {
  const Graph graph = fuse(build_model("lenet5"));
  Json json = to_json(make_plan(graph, recipe_of(10), {.workers = 1}), graph);
  json["segments"][0]["last"] = "fc9";
  EXPECT_NE(error_text([&] { plan_from_json(json, graph); }).find("'fc9'"), std::string::npos);
  json.erase("segments");
  EXPECT_NE(error_text([&] { plan_from_json(json, graph); }).find("segments"), std::string::npos);
}

TEST(Recipe, FingerprintFollowsWhatIsComputedOnly) {
  Recipe recipe = recipe_of(10);
  const std::string before = recipe.fingerprint();
  EXPECT_EQ(recipe_from_json(recipe.to_json()).fingerprint(), before);
  recipe.optimizer.momentum = 0.5;
  EXPECT_NE(recipe.fingerprint(), before);
}

TEST(Recipe, GroupsOfBatchNormAreComputedAndOthersKeepTheirFingerprint) {
  Recipe recipe = recipe_of(10);
  EXPECT_EQ(recipe.to_json().at("batch_norm"), "batch");
  const std::string before = recipe.fingerprint();
  recipe.batch_norm_group = 32;
  EXPECT_EQ(recipe.to_json().at("batch_norm"), "group:32");
  EXPECT_EQ(recipe_from_json(recipe.to_json()).batch_norm_group, 32);
  EXPECT_NE(recipe.fingerprint(), before);
  Json broken = recipe.to_json();
  for (const char* text : {"group:", "group:0", "group:-2", "group:3x", "instance"}) {
    broken["batch_norm"] = text;
    EXPECT_NE(error_text([&] { recipe_from_json(broken); }).find(text), std::string::npos) << text;
  }
}

// A vector of channels has one value a sample, so a lone sample has no variance there.
TEST(Recipe, AGroupNeedsTwoValuesForEachChannel) {
  NetBuilder net("vectors", {3});
  const Graph graph = grouped(
      std::move(net).finish(net.dense("b", net.batch_norm("n", net.dense("a", net.input(), 4)), 2)),
      4);
  Recipe recipe = recipe_of(8);
  recipe.batch_norm_group = 4;
  EXPECT_NO_THROW(require_groups(recipe, graph, 0));
  EXPECT_NO_THROW(require_groups(recipe, graph, 22));
  EXPECT_EQ(error_text([&] { require_groups(recipe, graph, 21); }),
            "--batch-norm group:4: the last group of a batch of 5 is 1 sample, so batch_norm 'n' "
            "would have one value per channel; use another group or --batch");
  recipe.batch = 9;
  EXPECT_NE(error_text([&] { require_groups(recipe, graph, 0); }).find("a batch of 9"),
            std::string::npos);
  EXPECT_NE(error_text([&] {
              require_groups(recipe, fuse(build_model("lenet5")), 0);
            }).find("has no batch norm"),
            std::string::npos);
}

TEST(Segments, OpStepAndNumbersCoverTheGraphInOrder) {
  const Graph graph = fuse(build_model("resnet18"));
  for (const char* choice : {"op", "block", "step", "1", "2", "7", "30"}) {
    std::uint32_t next = 0;
    for (const Segment& segment : segments_named(graph, choice)) {
      EXPECT_EQ(segment.first.value, next) << choice;
      next = segment.last.value + 1;
    }
    EXPECT_EQ(next, graph.nodes().size()) << choice;
  }
  EXPECT_EQ(segments_named(graph, "op").size(), graph.nodes().size());
  EXPECT_EQ(segments_named(graph, "7").size(), 7u);
}

TEST(Segments, ResidualBlocksStayWhole) {
  const Graph graph = fuse(build_model("resnet18"));
  // The stem, eight residual blocks, the classifier.
  EXPECT_EQ(segments_named(graph, "block").size(), 10u);
}

TEST(Segments, RefuseWhatTheyDoNotKnow) {
  const Graph graph = fuse(build_model("tiny"));
  for (const char* bad : {"", "0", "1000", "ops", "-1", "2x"})
    EXPECT_THROW(segments_named(graph, bad), InputError) << bad;
}

}  // namespace
}  // namespace regatta
