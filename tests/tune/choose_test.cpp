#include "tune/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "models/models.h"
#include "support/error_text.h"
#include "support/grouped.h"
#include "tune/choose_devices.h"

namespace regatta {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A machine: so many FLOP/s a core, so much for each task, and threads of a team that help each
// other by `team_gain` of a core each.
struct Machine {
  double flops_per_second = 20e9;
  double task_seconds = 5e-6;
  double team_gain = 0.8;
  double crowding = 0;
};

class MachineCosts final : public TaskCosts {
 public:
  MachineCosts(const Blueprint& blueprint, const Machine& machine)
      : blueprint_(blueprint), machine_(machine) {}
  Estimate of(const Task& task, int busy) const override {
    const DeviceGroup& group = blueprint_.group(task.group);
    double bytes = 0;
    for (const Action& action : task.actions)
      if (action.phase == Phase::reduce || action.phase == Phase::update)
        bytes += static_cast<double>(blueprint_.buckets[action.bucket.value].bytes) *
                 gradient_slots(blueprint_.plan);
    const double cores = 1 + machine_.team_gain * (group.team - 1);
    const double seconds = (task.flops / machine_.flops_per_second / cores + bytes / 10e9) *
                               (1 + machine_.crowding * (busy * group.team - 1)) +
                           1e-6;
    return {seconds, seconds, seconds};
  }
  RuntimeCosts runtime() const override {
    RuntimeCosts costs;
    costs.task = machine_.task_seconds;
    return costs;
  }

 private:
  const Blueprint& blueprint_;
  Machine machine_;
};

CostsFor on(const Machine& machine) {
  return [machine](const Blueprint& blueprint) {
    return std::make_unique<MachineCosts>(blueprint, machine);
  };
}

Recipe recipe_of(const Graph& graph, std::int64_t batch) {
  Recipe recipe;
  recipe.model = graph.name();
  recipe.batch = batch;
  return recipe;
}

std::vector<std::int64_t> shares_of(const Plan& plan) {
  std::vector<std::int64_t> shares;
  for (const DeviceGroup* group : groups_of(plan)) shares.push_back(share_of(*group));
  return shares;
}

Choice chosen(const Graph& graph, std::int64_t batch, const PlanOptions& options,
              const Machine& machine = {}) {
  return choose(graph, recipe_of(graph, batch), options, on(machine));
}

TEST(Choose, TasksThatCostMoreThanTheyBringAreGatheredIntoOneOnOneWorker) {
  const Graph graph = fuse(build_model("tiny"));
  const Candidate best = chosen(graph, 4, {.workers = 8}, {.task_seconds = 1e-3}).best();
  EXPECT_EQ(best.tasks, 1u);
  EXPECT_EQ(best.granularity.workers, 1);
}

TEST(Choose, LargeWorkIsCutForAllWorkers) {
  const Graph graph = fuse(build_model("lenet5"));
  const Candidate best = chosen(graph, 512, {.workers = 4}).best();
  EXPECT_EQ(best.granularity.workers * best.granularity.team, 4);
  EXPECT_GE(best.granularity.chunks, 4u);
  EXPECT_LT(best.shares.overhead, 0.02);
}

bool in_eight_chunks(const Plan& plan) { return chunks_of(plan).size() >= 8; }

TEST(Choose, APlanThatDoesNotFitGivesWayToOneThatDoes) {
  const Graph graph = fuse(build_model("lenet5"));
  const Recipe recipe = recipe_of(graph, 512);
  const PlanOptions options{.workers = 4};
  ASSERT_FALSE(in_eight_chunks(choose(graph, recipe, options, on({})).best().plan));
  const Choice choice = choose(graph, recipe, options, on({}), in_eight_chunks);
  for (const Candidate& each : choice.candidates) EXPECT_TRUE(in_eight_chunks(each.plan));
  // Where none fits the fastest is named, for the check to refuse.
  const Choice none = choose(graph, recipe, options, on({}), [](const Plan&) { return false; });
  EXPECT_EQ(to_json(none.best().plan, graph),
            to_json(choose(graph, recipe, options, on({})).best().plan, graph));
}

TEST(Choose, WhereNothingIsMeasuredTheRuleOfThumbCutsFinerUntilItFits) {
  const Graph graph = fuse(build_model("lenet5"));
  const Recipe recipe = recipe_of(graph, 512);
  const CostsFor unknown = costs_by(std::make_shared<const Profile>(), recipe.data);
  PlanOptions options{.workers = 4};
  EXPECT_FALSE(in_eight_chunks(choose(graph, recipe, options, unknown).best().plan));
  const Choice choice = choose(graph, recipe, options, unknown, in_eight_chunks);
  EXPECT_FALSE(choice.by_costs);
  EXPECT_EQ(choice.best().granularity.chunks, 8u);
  options.chunks = {2};  // what the user says stays
  EXPECT_EQ(choose(graph, recipe, options, unknown, in_eight_chunks).best().granularity.chunks, 2u);
}

TEST(Choose, OfPlansAboutAsFastTheOneWithTheFewestTasksIsTaken) {
  const Graph graph = fuse(build_model("tiny"));
  int mattered = 0;
  for (const double task_seconds : {1e-6, 2e-6, 4e-6, 8e-6, 16e-6})
    for (const std::int64_t batch : {32, 128, 512}) {
      const Choice choice = chosen(graph, batch, {.workers = 2}, {.task_seconds = task_seconds});
      const Seconds least =
          std::ranges::min(choice.candidates, {}, &Candidate::predicted).predicted;
      EXPECT_LE(choice.best().predicted, 1.02 * least) << task_seconds << " " << batch;
      for (const Candidate& each : choice.candidates)
        EXPECT_TRUE(choice.best().tasks <= each.tasks || each.predicted > 1.02 * least);
      mattered += choice.best().predicted > least;
    }
  EXPECT_GT(mattered, 0) << "nothing was tested";
}

TEST(Choose, FewSamplesGetTeamsOfCores) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 64, 64}, .classes = 10}));
  const Candidate best = chosen(graph, 2, {.workers = 8}, {.team_gain = 0.95}).best();
  EXPECT_GT(best.granularity.team, 1);
  EXPECT_LE(best.granularity.chunks, 2u);
}

TEST(Choose, TeamsThatDoNotHelpAreNotFormed) {
  const Graph graph = fuse(build_model("lenet5"));
  EXPECT_EQ(chosen(graph, 256, {.workers = 4}, {.team_gain = 0}).best().granularity.team, 1);
}

// What a team gains is predicted worst: trials decide, so there must be something to try.
TEST(Choose, BesideTeamsThatGainALotOthersAreGatheredToo) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 64, 64}, .classes = 10}));
  const Choice choice = chosen(graph, 64, {.workers = 8}, {.team_gain = 1.6});
  EXPECT_GT(choice.best().granularity.team, 1);
  const auto gathered_alone = [](const Candidate& each) {
    return each.granularity.team == 1 && each.granularity.workers == 8 &&
           each.granularity.segments != "step";
  };
  EXPECT_TRUE(std::ranges::any_of(choice.candidates, gathered_alone));
}

TEST(Choose, MoreWorkersAreNeverPredictedToBeSlower) {
  const Graph graph = fuse(build_model("tiny"));
  double before = 1e9;
  for (const int workers : {1, 2, 4, 8, 16}) {
    const double now =
        chosen(graph, 32, {.workers = workers}, {.crowding = 0.05}).best().predicted.count();
    EXPECT_LE(now, before * 1.02) << workers;  // a simpler plan may take 2% longer
    before = now;
  }
}

TEST(Choose, WhatTheUserFixedStays) {
  const Graph graph = fuse(build_model("lenet5"));
  const auto chunks = std::vector<std::int64_t>{3, 5};
  const Choice choice =
      chosen(graph, 8, {.workers = 4, .team = 1, .chunks = chunks, .segments = "block"});
  for (const Candidate& each : choice.candidates) {
    EXPECT_EQ(groups_of(each.plan).front()->chunks, chunks);
    EXPECT_EQ(groups_of(each.plan).front()->team, 1);
    EXPECT_EQ(each.granularity.segments, "block");
  }
}

TEST(Choose, EveryCandidateIsAPlanThatHolds) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  const Choice choice = chosen(graph, 13, {.workers = 6});
  EXPECT_GT(choice.candidates.size(), 10u);
  for (const Candidate& each : choice.candidates)
    EXPECT_EQ(faults(each.plan, graph, 13), std::vector<std::string>{});
}

TEST(Choose, EveryCandidateCutsBetweenGroups) {
  const Graph graph =
      grouped(fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10})), 4);
  const Choice choice = chosen(graph, 30, {.workers = 3});
  EXPECT_GT(choice.candidates.size(), 10u);
  for (const Candidate& each : choice.candidates)
    EXPECT_EQ(faults(each.plan, graph, 30), std::vector<std::string>{});
  PlanOptions both{.workers = 2, .devices = {DeviceKind::cpu, DeviceKind::cuda}};
  const std::vector<std::int64_t> shares = shares_of(chosen(graph, 30, both).best().plan);
  EXPECT_EQ(shares.front() % 4, 0);
  EXPECT_EQ(shares.front() + shares.back(), 30);
}

TEST(Choose, AWishThatCannotBeMetIsToldAsWithoutAChoice) {
  const Graph graph = fuse(build_model("tiny"));
  EXPECT_THAT(error_text([&] {
                chosen(graph, 8, {.workers = 2, .chunks = std::vector<std::int64_t>{3, 3}});
              }),
              HasSubstr("--chunks 3,3 are 6 samples, and there are 8 to cut"));
}

// What a choice costs is the plans that are lowered and the tasks that are played: both are
// counted, so that a choice that takes much longer is noticed on any machine.
TEST(Choose, ADeepNetworkIsChosenForByPlayingFewTasks) {
  struct Counted final : TaskCosts {
    Counted(const Blueprint& blueprint, std::size_t& counter)
        : costs(blueprint, {}), asked(counter) {}
    Estimate of(const Task& task, int busy) const override {
      ++asked;
      return costs.of(task, busy);
    }
    RuntimeCosts runtime() const override { return costs.runtime(); }
    MachineCosts costs;
    std::size_t& asked;
  };
  std::size_t plans = 0, asked = 0;
  const CostsFor costs = [&](const Blueprint& blueprint) {
    ++plans;
    return std::make_unique<Counted>(blueprint, asked);
  };
  const Graph graph = fuse(build_model("resnet50"));
  const Choice choice = choose(graph, recipe_of(graph, 64), {.workers = 16, .cpus = 64}, costs);
  EXPECT_GT(choice.compared, 30u);
  // About one and a half times as many as it takes: 130 plans, 212,000 questions.
  EXPECT_LE(plans, 200u);
  EXPECT_LE(asked, 320'000u);
}

TEST(Choose, AGuessDoesNotBeatAMeasurement) {
  // Teams look good here, but nobody has measured them.
  class TeamsUnknown final : public TaskCosts {
   public:
    explicit TeamsUnknown(const Blueprint& blueprint)
        : costs_(blueprint, {.team_gain = 1}), team_(groups_of(blueprint.plan).front()->team) {}
    Estimate of(const Task& task, int busy) const override { return costs_.of(task, busy); }
    RuntimeCosts runtime() const override { return costs_.runtime(); }
    MeasuredShares measured_shares(const TaskList&, int) const override {
      return {team_ > 1 ? 0.1 : 0.9, 0};
    }

   private:
    MachineCosts costs_;
    int team_;
  };
  const Graph graph = fuse(build_model("lenet5"));
  const CostsFor costs = [](const Blueprint& blueprint) {
    return std::make_unique<TeamsUnknown>(blueprint);
  };
  const Choice choice = choose(graph, recipe_of(graph, 2), {.workers = 4}, costs);
  EXPECT_EQ(choice.best().granularity.team, 1);
}

TEST(Choose, GuessesAloneChooseNothing) {
  // Sixteen workers would be fastest if the guess were right.
  class Unknown final : public TaskCosts {
   public:
    explicit Unknown(const Blueprint& blueprint)
        : costs_(blueprint, {.flops_per_second = 1e9, .task_seconds = 0}) {}
    Estimate of(const Task& task, int busy) const override { return costs_.of(task, busy); }
    RuntimeCosts runtime() const override { return costs_.runtime(); }
    MeasuredShares measured_shares(const TaskList&, int) const override { return {0, 0}; }

   private:
    MachineCosts costs_;
  };
  const Graph graph = fuse(build_model("tiny"));
  const CostsFor costs = [](const Blueprint& blueprint) {
    return std::make_unique<Unknown>(blueprint);
  };
  const PlanOptions options{.workers = 16};
  const Recipe recipe = recipe_of(graph, 10);
  const Choice choice = choose(graph, recipe, options, costs);
  EXPECT_EQ(to_json(choice.best().plan, graph), to_json(make_plan(graph, recipe, options), graph));
  EXPECT_EQ(choice.best().granularity.workers, 1);
  EXPECT_GT(choice.best().predicted.count(), 0);
}

TEST(Choose, DevicesShareTheBatchByTheirSpeeds) {
  const Graph graph = fuse(build_model("lenet5"));
  PlanOptions options{.workers = 2};
  options.devices = {DeviceKind::cpu, DeviceKind::cuda};
  // A GPU that is as fast as one of the two cores.
  const std::vector<std::int64_t> shares = shares_of(chosen(graph, 96, options).best().plan);
  EXPECT_EQ(shares[0] + shares[1], 96);
  EXPECT_NEAR(static_cast<double>(shares[0]), 64, 3);
}

// A GPU that is `gpu_speed` times as fast as a core.
class WithGpu final : public TaskCosts {
 public:
  WithGpu(const Blueprint& blueprint, double gpu_speed)
      : blueprint_(blueprint), core_(blueprint, {}), gpu_speed_(gpu_speed) {}
  Estimate of(const Task& task, int busy) const override {
    const Estimate core = core_.of(task, busy);
    const bool gpu = !task.on_host && blueprint_.group(task.group).kind == DeviceKind::cuda;
    const double seconds = gpu ? core.seconds / gpu_speed_ : core.seconds;
    return {seconds, seconds, seconds};
  }
  RuntimeCosts runtime() const override { return core_.runtime(); }

 private:
  const Blueprint& blueprint_;
  MachineCosts core_;
  double gpu_speed_;
};

Choice chosen_beside(double gpu_speed, const char* model, std::int64_t batch, PlanOptions options) {
  const Graph graph = fuse(build_model(model));
  options.devices = {DeviceKind::cuda};
  options.devices_open = true;
  return choose(graph, recipe_of(graph, batch), options, [=](const Blueprint& blueprint) {
    return std::make_unique<WithGpu>(blueprint, gpu_speed);
  });
}

TEST(Choose, CoresRestBesideAMuchFasterGpu) {
  const Choice choice = chosen_beside(1000, "lenet5", 64, {.workers = 4, .cpus = 4});
  EXPECT_EQ(kind_of(choice.best().granularity), PlanKind::gpu);
  EXPECT_THAT(explain(choice), HasSubstr("roles: the GPU computes, cores load for it"));
}

TEST(Choose, AGpuThatIsSlowerThanOneCoreRests) {
  const Choice choice = chosen_beside(0.01, "lenet5", 64, {.workers = 4, .cpus = 4});
  EXPECT_NE(kind_of(choice.best().granularity), PlanKind::gpu);
  EXPECT_NE(kind_of(choice.best().granularity), PlanKind::shared);
  EXPECT_THAT(explain(choice), HasSubstr("roles: cores compute, the GPU rests"));
}

// Costs of the cores were measured, those of the GPU were not.
class GpuNeverMeasured final : public TaskCosts {
 public:
  explicit GpuNeverMeasured(const Blueprint& blueprint)
      : has_gpu_(gpu_of(blueprint.plan) != nullptr), costs_(blueprint, 0.01) {}
  Estimate of(const Task& task, int busy) const override { return costs_.of(task, busy); }
  RuntimeCosts runtime() const override { return costs_.runtime(); }
  MeasuredShares measured_shares(const TaskList& list, int workers) const override {
    return has_gpu_ ? MeasuredShares{0, 0} : costs_.measured_shares(list, workers);
  }

 private:
  bool has_gpu_;
  WithGpu costs_;
};

TEST(Choose, AGpuThatWasNeverMeasuredComputesEvenIfTheCoresWere) {
  const Graph graph = fuse(build_model("lenet5"));
  PlanOptions options{.workers = 4, .cpus = 4};
  options.devices = {DeviceKind::cuda};
  options.devices_open = true;
  const Choice choice = choose(
      graph, recipe_of(graph, 64), options,
      [](const Blueprint& blueprint) { return std::make_unique<GpuNeverMeasured>(blueprint); });
  EXPECT_EQ(kind_of(choice.best().granularity), PlanKind::gpu);
  EXPECT_FALSE(choice.by_costs);

  const Choice too_small = choose(
      graph, recipe_of(graph, 64), options,
      [](const Blueprint& blueprint) { return std::make_unique<GpuNeverMeasured>(blueprint); },
      [](const Plan& plan) { return gpu_of(plan) == nullptr; });
  EXPECT_NE(kind_of(too_small.best().granularity), PlanKind::gpu) << "no plan fits into the GPU";
  EXPECT_TRUE(too_small.by_costs);
}

TEST(Choose, AGpuAsFastAsTheCoresSharesTheBatchWithThem) {
  const Choice choice = chosen_beside(3, "resnet18", 32, {.workers = 4, .cpus = 4});
  ASSERT_EQ(kind_of(choice.best().granularity), PlanKind::shared);
  const std::vector<std::int64_t> shares = shares_of(choice.best().plan);
  EXPECT_EQ(shares[0] + shares[1], 32);
  EXPECT_NEAR(static_cast<double>(shares[1]), 16, 4);
  EXPECT_THAT(explain(choice), HasSubstr("samples of each batch, cores the others"));
}

// One of sixteen cores is kept for the GPU, which is as fast as twelve cores. Of four samples the
// GPU gets two, and two teams of seven threads, each as fast as 5.8 cores, get one each.
TEST(Choose, SeveralTeamsShareTheBatchWithAGpu) {
  const Graph graph = fuse(build_model("resnet18"));
  PlanOptions options{.workers = 16, .cpus = 16};
  options.devices = {DeviceKind::cpu, DeviceKind::cuda};
  const Choice choice = choose(graph, recipe_of(graph, 4), options, [](const Blueprint& blueprint) {
    return std::make_unique<WithGpu>(blueprint, 12.0);
  });
  EXPECT_EQ(choice.best().granularity.team, 7);
  EXPECT_EQ(choice.best().granularity.workers, 2);
  EXPECT_EQ(shares_of(choice.best().plan), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(teams_beside_gpu({.workers = 4, .cpus = 8}), (std::vector<int>{2, 4}));
  EXPECT_TRUE(teams_beside_gpu({.workers = 1}).empty());
}

TEST(Choose, BesideAGpuTheCoresShareIsCutAsAsked) {
  const Graph graph = fuse(build_model("resnet18"));
  PlanOptions options{.workers = 4, .cpus = 4};
  options.devices = {DeviceKind::cpu, DeviceKind::cuda};
  const auto with_chunks = [&](std::int64_t chunks) {
    options.chunks = {chunks};
    return choose(graph, recipe_of(graph, 8), options, [](const Blueprint& blueprint) {
      return std::make_unique<WithGpu>(blueprint, 1000.0);
    });
  };
  // By speed the cores would get one sample.
  for (const std::int64_t chunks : {1, 5, 7}) {
    const Plan plan = with_chunks(chunks).best().plan;
    EXPECT_EQ(std::ssize(groups_of(plan).front()->chunks), chunks);
  }
  EXPECT_THAT(error_text([&] { with_chunks(8); }),
              HasSubstr("--chunks 8: use 1 to 7, as many as the cores' share can be cut into"));
}

TEST(Choose, AGpuThatIsMadeSlowerGetsLess) {
  const auto share_of_gpu = [](double slowness) {
    const Choice choice =
        chosen_beside(6, "resnet18", 32, {.workers = 4, .cpus = 4, .gpu_slowness = slowness});
    return choice.best().granularity.gpu_share;
  };
  EXPECT_GT(share_of_gpu(1), share_of_gpu(2));
  EXPECT_GT(share_of_gpu(2), share_of_gpu(4));
}

TEST(Choose, InFp32AGpusLayoutIsCompared) {
  const Choice choice = chosen_beside(1000, "lenet5", 64, {.workers = 4, .cpus = 4});
  std::set<Layout> layouts;
  for (const Candidate& each : choice.candidates)
    for (const DeviceGroup* group : groups_of(each.plan))
      if (group->kind == DeviceKind::cuda) layouts.insert(group->layout);
  EXPECT_EQ(layouts, (std::set{Layout::nhwc, Layout::nchw}));
  EXPECT_EQ(gpu_layouts({}, Precision::bf16), std::vector{Layout::nhwc});
  EXPECT_EQ(gpu_layouts({.gpu_layout = Layout::nchw}, Precision::fp32), std::vector{Layout::nchw});
}

TEST(Choose, DevicesThatCannotFollowAreLeftOut) {
  const auto left = [](bool cores_can, bool gpu_can) {
    PlanOptions options{.devices = {DeviceKind::cuda}, .devices_open = true};
    leave_out_devices(options, cores_can, gpu_can);
    return std::pair(options.devices.front(), options.devices_open);
  };
  EXPECT_EQ(left(true, true), std::pair(DeviceKind::cuda, true));
  EXPECT_EQ(left(false, true), std::pair(DeviceKind::cuda, false));
  EXPECT_EQ(left(true, false), std::pair(DeviceKind::cpu, false));
  PlanOptions named{.devices = {DeviceKind::cuda}};
  leave_out_devices(named, true, false);
  EXPECT_EQ(named.devices, std::vector{DeviceKind::cuda}) << "as the user wants it";
}

// 32 samples leave the CPU shares that are smaller than the chunks asked for.
TEST(Choose, ChunksThatAreGivenCutTheCoresShareAsFarAsItCanBeCut) {
  const Choice choice = chosen_beside(
      100, "lenet5", 32, {.workers = 4, .cpus = 4, .chunks = std::vector<std::int64_t>{8}});
  bool shared = false;
  for (const Candidate& each : choice.candidates) {
    shared |= kind_of(each.granularity) == PlanKind::shared;
    EXPECT_LE(each.granularity.chunks, 9u);
  }
  EXPECT_TRUE(shared);
}

TEST(Choose, WhereTheBatchCannotBeSharedNobodyShares) {
  PlanOptions list{.workers = 4, .cpus = 4}, team = list;
  list.chunks = {16, 16};
  team.team = 4;
  for (const PlanOptions& options : {list, team})
    for (const Candidate& each : chosen_beside(3, "lenet5", 32, options).candidates)
      EXPECT_NE(kind_of(each.granularity), PlanKind::shared);
}

TEST(Choose, DevicesThatAreNamedAndCannotShareAreRefused) {
  const Graph graph = fuse(build_model("tiny"));
  const auto refused = [&](std::int64_t batch, PlanOptions options) {
    options.workers = options.cpus = 4;
    options.devices = {DeviceKind::cpu, DeviceKind::cuda};
    return error_text([&] { chosen(graph, batch, options); });
  };
  PlanOptions list, team;
  list.chunks = {4, 4};
  team.team = 4;
  EXPECT_THAT(refused(1, {}), HasSubstr("a batch of 1 has no share for each of two devices"));
  EXPECT_THAT(refused(8, list), HasSubstr("add --shares"));
  EXPECT_THAT(refused(8, team), HasSubstr("--team 4: beside a GPU, which keeps a CPU, use 1 to 3"));
}

// As a machine, but a sample takes so long to load.
class LoadingCosts final : public TaskCosts {
 public:
  LoadingCosts(const Blueprint& blueprint, double sample_seconds)
      : blueprint_(blueprint), costs_(blueprint, {}), sample_seconds_(sample_seconds) {}
  Estimate of(const Task& task, int busy) const override {
    Estimate cost = costs_.of(task, busy);
    for (const Action& action : task.actions)
      if (action.phase == Phase::load)
        cost.seconds +=
            sample_seconds_ * static_cast<double>(blueprint_.chunks[action.chunk.value].capacity);
    return cost;
  }
  RuntimeCosts runtime() const override { return costs_.runtime(); }

 private:
  const Blueprint& blueprint_;
  MachineCosts costs_;
  double sample_seconds_;
};

Choice chosen_with_loading(double sample_seconds) {
  const Graph graph = fuse(build_model("tiny"));
  const CostsFor costs = [=](const Blueprint& blueprint) {
    return std::make_unique<LoadingCosts>(blueprint, sample_seconds);
  };
  PlanOptions options{.workers = 2};
  options.chunks = {2};
  options.segments = "step";
  return choose(graph, recipe_of(graph, 128), options, costs);
}

TEST(Choose, ShortLoadsAreGatheredWithTheWork) {
  const Choice choice = chosen_with_loading(1e-8);
  EXPECT_TRUE(choice.best().plan.gather_loads);
  EXPECT_EQ(choice.best().tasks, 3u);
  EXPECT_THAT(explain(choice), HasSubstr("gathered"));
  // The other way stays among the candidates, to be tried out.
  EXPECT_TRUE(std::ranges::any_of(choice.candidates,
                                  [](const Candidate& each) { return !each.plan.gather_loads; }));
}

// Chunks of 12 and 4 samples on two workers: who has the small one waits at every meeting.
TEST(Choose, WeightGradientsFillTheGapsAtMeetings) {
  const Graph graph = fuse(build_model("resnet20"));
  PlanOptions options{.workers = 2, .team = 1};
  options.chunks = {12, 4};
  options.segments = "step";
  const Choice choice = chosen(graph, 16, options, {.task_seconds = 1e-6});
  EXPECT_EQ(choice.best().plan.backward, Backward::split);
  EXPECT_THAT(explain(choice), HasSubstr("split"));
  // The other way stays among the candidates, to be tried out.
  const auto whole = [](const Candidate& each) { return each.plan.backward == Backward::whole; };
  EXPECT_TRUE(std::ranges::any_of(choice.candidates, whole));
  options.backward = Backward::whole;
  EXPECT_TRUE(std::ranges::all_of(chosen(graph, 16, options).candidates, whole));
}

TEST(Choose, BackwardIsNotSplitWhereNothingMeets) {
  PlanOptions options{.workers = 2};
  options.chunks = {12, 4};
  const Graph graph = fuse(build_model("lenet5"));
  for (const Candidate& each : chosen(graph, 16, options).candidates)
    EXPECT_EQ(each.plan.backward, Backward::whole);
  const Graph norms = fuse(build_model("resnet20"));
  options.chunks = {1};
  for (const Candidate& each : chosen(norms, 16, options).candidates)
    EXPECT_EQ(each.plan.backward, Backward::whole);
}

TEST(Choose, LongLoadsAreDoneAhead) {
  for (const Candidate& each : chosen_with_loading(1e-4).candidates)
    EXPECT_FALSE(each.plan.gather_loads);
}

// As many steps are played ahead as will be run ahead, or a late submitter would hold up the one
// and not the other.
TEST(Choose, WhatIsPlayedIsWhatIsRun) {
  const Graph graph = fuse(build_model("tiny"));
  const Recipe recipe = recipe_of(graph, 8);
  for (const double scale : {1.0, 1e3}) {
    const CostsFor costs = on({.task_seconds = 20e-6 * scale});
    const Choice choice = choose(graph, recipe, {.workers = 2}, costs);
    for (const Candidate& each : choice.candidates) {
      const Candidate again = candidate_of(graph, recipe, each.plan, costs);
      EXPECT_DOUBLE_EQ(again.predicted.count(), each.predicted.count())
          << each.plan.steps_in_flight;
    }
    EXPECT_EQ(choice.best().plan.steps_in_flight > 2, scale == 1.0);
  }
}

TEST(Choose, TheExplanationHasTheChoiceFirst) {
  const Graph graph = fuse(build_model("tiny"));
  // Fewer tasks are worth a little time: the choice is not the fastest by prediction.
  const Choice choice = chosen(graph, 64, {.workers = 2}, {.task_seconds = 5e-6});
  ASSERT_GT(choice.best().predicted.count(), choice.candidates[1].predicted.count());
  const std::string text = explain(choice, 4);
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(line, HasSubstr("predicted"));
  for (std::size_t row = 0; row < 4; ++row) {
    std::getline(lines, line);
    const Candidate& each = choice.candidates[row];
    char predicted[32];
    std::snprintf(predicted, sizeof predicted, "%zu %9.3f ms", each.tasks,
                  1e3 * each.predicted.count());
    EXPECT_THAT(line, StartsWith(each.granularity.segments + " ")) << row;
    EXPECT_THAT(line, HasSubstr(predicted)) << row;
  }
  EXPECT_THAT(text, HasSubstr("the first is taken"));
}

}  // namespace
}  // namespace regatta
