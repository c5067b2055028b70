// Orders and placements of a plan as StarPU's workers follow them.
#include "tasks/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <set>

#include "base/error.h"
#include "exec/observe.h"
#include "models/models.h"
#include "support/error_text.h"
#include "support/executor_run.h"
#include "support/temporary_folder.h"
#include "tasks/play.h"
#include "trace/recorder.h"
#include "trace/store.h"

namespace regatta {
namespace {

const Graph& lenet5() {
  static const Graph graph = fuse(build_model("lenet5"));
  return graph;
}

Plan plan_of_four() {
  return plan_for(
      lenet5(), 16,
      {.workers = 2, .chunks = std::vector<std::int64_t>{4}, .segments = std::string("block")});
}

ExecOptions options() { return {{.samples = Dtype::f32}, {1.0f, {0.0f}, {1.0f}}, true}; }

StepInput some_input(std::int64_t step) {
  StepInput input;
  input.samples = 16;
  input.recorded_as = step;
  input.load = [](std::int64_t, std::int64_t count, std::byte* data, Target* targets) {
    std::fill_n(data, static_cast<std::size_t>(count) * 784 * sizeof(float), std::byte{0});
    std::fill_n(targets, count, Target::of(0));
  };
  return input;
}

// What `steps` steps of the plan left in a trace.
trace::Record recorded(const Plan& plan, int steps, std::vector<float>* logits = nullptr) {
  const TemporaryFolder folder;
  const auto file = folder.path() / trace::store_name;
  Executor executor(lenet5(), plan, options());
  auto recorder = std::make_shared<trace::Recorder>(
      trace::RecorderOptions{.file = file, .steps_in_flight = plan.steps_in_flight});
  executor.record(recorder);
  Ticket before;
  for (int step = 1; step <= steps; ++step) {
    const Ticket ticket = executor.submit(ListKind::train, some_input(step));
    if (before) executor.wait(before);
    before = ticket;
  }
  executor.wait(before);
  executor.end_record();
  recorder->finish();
  if (logits) *logits = executor.parameter(ParameterId{0});
  return trace::read_store(file);
}

// Tasks of the list, worker by worker, in the order they began in each step.
std::vector<std::vector<std::uint32_t>> order_in(const trace::Record& record, std::int64_t step,
                                                 const TaskList& list) {
  std::vector<RanAt> tasks(list.tasks.size());
  for (const trace::Task& task : record.tasks)
    if (task.step == step)
      tasks[static_cast<std::size_t>(task.kind)] = {task.worker, trace::seconds(task.start)};
  return order_of(tasks, 2);
}

// But for those that fill gaps.
std::vector<std::uint32_t> in_turn(const std::vector<std::uint32_t>& tasks, const TaskList& list) {
  std::vector<std::uint32_t> rest;
  for (const std::uint32_t t : tasks)
    if (list.tasks[t].actions.front().phase != Phase::load) rest.push_back(t);
  return rest;
}

// Everything on worker 1, but every third task on worker 0.
Plan fixed_plan(TaskList& list) {
  Plan plan = plan_of_four();
  list = lower(make_blueprint(lenet5(), plan, options().numbers, true), ListKind::train);
  std::vector<RanAt> tasks;
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    tasks.push_back({t % 3 == 0 ? 0 : 1, static_cast<double>(t)});
  plan.order = order_of(tasks, 2);
  plan.placement = Placement::fixed;
  return plan;
}

TEST(StaticPlacement, EveryWorkerRunsItsListInOrderStepAfterStep) {
  TaskList list;
  const Plan plan = fixed_plan(list);
  const trace::Record record = recorded(plan, 6);
  for (std::int64_t step = 1; step <= 6; ++step) {
    const auto ran = order_in(record, step, list);
    for (std::size_t w = 0; w < 2; ++w)
      EXPECT_EQ(in_turn(ran[w], list), in_turn(plan.order[w], list))
          << "worker " << w << " in step " << step;
  }
}

TEST(StaticPlacement, ARecordedStepCanBeRepeated) {
  TaskList list =
      lower(make_blueprint(lenet5(), plan_of_four(), options().numbers, true), ListKind::train);
  const trace::Record first = recorded(plan_of_four(), 4);
  Plan again = plan_of_four();
  again.order = order_in(first, 3, list);
  again.placement = Placement::fixed;
  const trace::Record second = recorded(again, 4);
  const auto ran = order_in(second, 2, list);
  for (std::size_t w = 0; w < 2; ++w)
    EXPECT_EQ(in_turn(ran[w], list), in_turn(again.order[w], list));
}

TEST(StaticPlacement, ComputesWhatAnyPlacementComputes) {
  TaskList list;
  std::vector<float> fixed, free;
  recorded(plan_of_four(), 3, &free);
  recorded(fixed_plan(list), 3, &fixed);
  EXPECT_EQ(fixed, free);
}

TEST(StaticPlacement, AnOrderThatWouldHangIsRefused) {
  TaskList list;
  Plan plan = fixed_plan(list);
  for (auto& mine : plan.order) std::ranges::reverse(mine);
  EXPECT_NE(error_text([&] {
              const Executor refused(lenet5(), plan, options());
            }).find("can never be followed"),
            std::string::npos);
}

TEST(HybridPlacement, AChunkStaysWithItsWorker) {
  Plan plan = plan_of_four();
  plan.placement = Placement::hybrid;
  const trace::Record record = recorded(plan, 4);
  std::set<std::pair<std::int32_t, std::int32_t>> seen;  // chunk, worker
  for (const trace::Task& task : record.tasks) {
    const trace::TaskKind& kind = record.kind_of(task);
    if (kind.segment >= 0 && kind.chunk >= 0) seen.emplace(kind.chunk, task.worker);
  }
  EXPECT_EQ(seen.size(), 4u);
  for (const auto& [chunk, worker] : seen) EXPECT_EQ(worker, chunk % 2);
}

// What the executor reckons with where nothing was measured, and a runtime that takes no time.
class FreeRuntime final : public TaskCosts {
 public:
  explicit FreeRuntime(const Blueprint& blueprint) : costs_(blueprint, nullptr, "") {}
  Estimate of(const Task& task, int busy) const override { return costs_.of(task, busy); }
  RuntimeCosts runtime() const override { return {0, 0, 0, 0, 0, 0, 0, 0}; }

 private:
  ProfileCosts costs_;
};

// Worker by worker, the tasks of the last step that was played.
std::vector<std::vector<std::uint32_t>> played_order(const Plan& plan, TaskList& list) {
  const Blueprint blueprint = make_blueprint(lenet5(), plan, options().numbers, true);
  list = lower(blueprint, ListKind::train);
  std::vector<RanAt> tasks;
  for (const PlayedTask& task : play(blueprint, list, FreeRuntime(blueprint)).tasks)
    tasks.push_back({task.worker, task.start});
  return order_of(tasks, workers_of(plan).size());
}

// The order of tasks in a step that was run. All tasks but the first wait until the whole step is
// submitted.
std::vector<std::vector<std::uint32_t>> executed_order(const Plan& plan) {
  Executor executor(lenet5(), plan, options());
  executor.wait(executor.submit(ListKind::prepare, {}));
  executor.wait(executor.submit(ListKind::train, some_input(0)));  // from here on chunks have homes
  std::vector<RanAt> tasks;
  executor.watch(
      [&](const ListTimes& done) {
        for (const TaskTimes& task : done.times)
          tasks.push_back({task.worker, Seconds(task.start.time_since_epoch()).count()});
      },
      Depth::task);
  std::latch submitted(1);
  StepInput input = some_input(0);
  input.load = [&submitted, load = input.load](std::int64_t first, std::int64_t count,
                                               std::byte* data, Target* targets) {
    submitted.wait();
    load(first, count, data, targets);
  };
  const Ticket ticket = executor.submit(ListKind::train, input);
  submitted.count_down();
  executor.wait(ticket);
  return order_of(tasks, workers_of(plan).size());
}

// One worker, so that times have no say: only the policy has.
TEST(HybridPlacement, TheExecutorsOrderIsThePoliciesOrder) {
  for (const char* segments : {"block", "op"}) {
    Plan plan = plan_for(
        lenet5(), 16,
        {.workers = 1, .chunks = std::vector<std::int64_t>{4}, .segments = std::string(segments)});
    plan.nodes.front().groups.front().lanes = 4;
    plan.steps_in_flight = 1;
    for (const Placement placement : {Placement::dynamic, Placement::hybrid}) {
      plan.placement = placement;
      TaskList list;
      const auto played = played_order(plan, list);
      EXPECT_EQ(executed_order(plan), played) << segments << " " << placement_name(placement);
    }
  }
}

TEST(StaticPlacement, TheExecutorsOrderIsThePlays) {
  Plan plan = plan_of_four();
  TaskList list;
  plan.order = played_order(plan, list);
  plan.placement = Placement::fixed;
  const auto played = played_order(plan, list), ran = executed_order(plan);
  for (std::size_t w = 0; w < 2; ++w) {
    EXPECT_EQ(in_turn(played[w], list), in_turn(plan.order[w], list));
    EXPECT_EQ(in_turn(ran[w], list), in_turn(plan.order[w], list));
  }
}

// Lists without an order come between those that have one: what is trained next goes on from the
// turns before.
TEST(StaticPlacement, ListsWithoutAnOrderComeBetween) {
  TaskList list;
  Executor executor(lenet5(), fixed_plan(list), options());
  for (const ListKind job : {ListKind::prepare, ListKind::train, ListKind::evaluate,
                             ListKind::train, ListKind::first, ListKind::train, ListKind::evaluate})
    EXPECT_EQ(executor.wait(executor.submit(job, some_input(0))).losses.size(), 16u);
}

TEST(SlowWorkers, TakeSoManyTimesAsLong) {
  Plan plan = plan_for(lenet5(), 16, {.workers = 2, .chunks = std::vector<std::int64_t>{8, 8}});
  plan.placement = Placement::hybrid;
  plan.nodes[0].groups[0].slow = {1, 20};
  const trace::Record record = recorded(plan, 8);
  std::vector<double> shortest(2, 1e9);
  for (const trace::Task& task : record.tasks)
    if (record.kind_of(task).segment >= 0 && record.kind_of(task).chunk >= 0)
      shortest[static_cast<std::size_t>(task.worker)] = std::min(
          shortest[static_cast<std::size_t>(task.worker)], trace::seconds(task.duration()));
  // The shortest of each: a busy machine only ever adds time.
  EXPECT_GT(shortest[1], 10 * shortest[0]);
}

TEST(Pace, AWorkerThatNeedsMoreJoulesRestsWhileTheOtherIsInTime) {
  Plan plan = plan_of_four();
  plan.nodes[0].groups[0].powers = {{.slow = 1, .watts = 9}, {.slow = 1, .watts = 2}};
  std::vector<float> paced, unpaced;
  const trace::Record fast = recorded(plan, 3, &unpaced);
  plan.pace_s = 100;  // far longer than any machine takes
  const trace::Record slow = recorded(plan, 3, &paced);
  ASSERT_EQ(slow.tasks.size(), fast.tasks.size());
  for (const trace::Task& task : slow.tasks) EXPECT_EQ(task.worker, 1);
  EXPECT_EQ(paced, unpaced);
}

TEST(Pace, AllWorkersHelpWhereTimeIsShort) {
  Plan plan = plan_of_four();
  plan.nodes[0].groups[0].powers = {{.slow = 1, .watts = 9}, {.slow = 1, .watts = 2}};
  plan.pace_s = 1e-9;
  std::set<std::int32_t> workers;
  for (const trace::Task& task : recorded(plan, 20).tasks) workers.insert(task.worker);
  EXPECT_EQ(workers.size(), 2u);
}

}  // namespace
}  // namespace regatta
