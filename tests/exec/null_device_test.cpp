// The executor without kernels: long lists through gates and submission, and plans whose time can
// be reckoned by hand because every task holds its worker for a known time.
#include "exec/null_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "exec/observe.h"
#include "models/models.h"
#include "support/executor_run.h"
#include "support/temporary_folder.h"
#include "tasks/play.h"
#include "trace/analysis.h"
#include "trace/recorder.h"
#include "trace/store.h"

namespace regatta {
namespace {

using Hold = std::function<Seconds(const Task&)>;

ExecOptions null_options(const Hold& hold) {
  ExecOptions options;
  options.null_kernels = hold;
  return options;
}

StepInput no_samples(const Plan& plan, std::int64_t step) {
  StepInput input;
  input.recorded_as = step;
  for (const DeviceGroup* group : groups_of(plan)) input.samples += share_of(*group);
  input.load = [](std::int64_t, std::int64_t, std::byte*, Target*) {};
  return input;
}

// --- long lists

// Start and end of every task of some steps, as many on their way as the plan allows.
std::vector<std::vector<TaskTimes>> times_of(const Graph& graph, const Plan& plan,
                                             std::int64_t steps) {
  std::vector<std::vector<TaskTimes>> times;
  Executor executor(graph, plan, null_options([](const Task&) { return Seconds(0); }));
  executor.watch(
      [&](const ListTimes& done) { times.emplace_back(done.times.begin(), done.times.end()); },
      Depth::task);
  std::deque<Ticket> on_their_way;
  for (std::int64_t step = 1; step <= steps; ++step) {
    on_their_way.push_back(executor.submit(ListKind::train, no_samples(plan, step)));
    if (std::ssize(on_their_way) < plan.steps_in_flight) continue;
    executor.wait(on_their_way.front());
    on_their_way.pop_front();
  }
  for (const Ticket& ticket : on_their_way) executor.wait(ticket);
  return times;
}

// A task may not begin before those have ended that it depends on, in its step or one before.
void expect_order(const TaskList& list, const std::vector<std::vector<TaskTimes>>& steps) {
  const std::size_t size = list.tasks.size();
  const auto times = [&](std::int64_t id) -> const TaskTimes& {
    return steps[static_cast<std::size_t>(id) / size][static_cast<std::size_t>(id) % size];
  };
  Dependencies dependencies;
  std::size_t edges = 0, broken = 0;
  for (std::size_t step = 0; step < steps.size(); ++step)
    for (const auto& [task, before] :
         dependencies.follow(list, step, static_cast<std::int64_t>(step * size))) {
      ++edges;
      broken += times(task).start < times(before).end;
    }
  EXPECT_EQ(broken, 0u) << "of " << edges;
  EXPECT_GT(edges, steps.size() * size / 2);
}

// Every task ran, once, and no worker ran two at a time.
void expect_one_at_a_time(const std::vector<std::vector<TaskTimes>>& steps, int workers) {
  std::vector<std::vector<TaskTimes>> by_worker(static_cast<std::size_t>(workers));
  for (const std::vector<TaskTimes>& step : steps)
    for (const TaskTimes& task : step) {
      ASSERT_GE(task.worker, 0);
      ASSERT_LT(task.worker, workers);
      by_worker[static_cast<std::size_t>(task.worker)].push_back(task);
    }
  for (std::vector<TaskTimes>& tasks : by_worker) {
    std::ranges::sort(tasks, {}, &TaskTimes::start);
    for (std::size_t i = 1; i < tasks.size(); ++i) ASSERT_GE(tasks[i].start, tasks[i - 1].end);
  }
}

void expect_long_lists_in_order(const Graph& graph, std::int64_t chunks) {
  constexpr std::int64_t steps = 4;
  for (const int workers : {1, 2, 4}) {
    SCOPED_TRACE(std::to_string(workers) + " workers");
    const Plan plan =
        plan_for(graph, chunks, {.workers = workers, .chunks = {{chunks}}, .segments = "op"});
    const TaskList list = lower(make_blueprint(graph, plan, {}, true), ListKind::train);
    ASSERT_GT(list.tasks.size(), 2000u);
    const auto times = times_of(graph, plan, steps);
    ASSERT_EQ(times.size(), static_cast<std::size_t>(steps));
    expect_order(list, times);
    expect_one_at_a_time(times, workers);
  }
}

TEST(NullKernels, ThousandsOfTasksKeepTheirOrder) {
  expect_long_lists_in_order(fuse(build_model("tiny")), 256);
}

TEST(NullKernels, ThousandsOfTasksThatMeetKeepTheirOrder) {
  expect_long_lists_in_order(fuse(build_model("resnet20")), 32);
}

TEST(NullKernels, ComputeNothing) {
  const Graph graph = fuse(build_model("tiny"));
  const Plan plan = plan_for(graph, 8, {.workers = 2, .chunks = {{4}}});
  Executor executor(graph, plan, null_options([](const Task&) { return Seconds(0); }));
  const std::vector<float> before(executor.parameter(ParameterId{0}).size(), 1.5f);
  executor.set_parameter(ParameterId{0}, before);
  executor.wait(executor.submit(ListKind::prepare, {}));
  const StepResult result = executor.wait(executor.submit(ListKind::train, no_samples(plan, 1)));
  EXPECT_EQ(result.losses, std::vector<float>(8, 0.0f));
  EXPECT_EQ(executor.parameter(ParameterId{0}), before);
}

// --- plans whose time is reckoned by hand

// The same times for the executor and for whoever predicts.
class KnownCosts final : public TaskCosts {
 public:
  explicit KnownCosts(Hold hold) : hold_(std::move(hold)) {}
  Estimate of(const Task& task, int) const override {
    const double seconds = hold_(task).count();
    return {seconds, seconds, seconds};
  }
  RuntimeCosts runtime() const override { return {0, 0, 0, 0, 0, 0, 0, 0}; }

 private:
  Hold hold_;
};

// A play gives every task a nanosecond at least.
constexpr double play_error = 1e-8;

bool has(const Task& task, Phase phase) {
  return std::ranges::find(task.actions, phase, &Action::phase) != task.actions.end();
}

struct Recorded {
  TaskList list;
  trace::Record record;
  std::vector<Seconds> took;  // by step: from before its submission to its end
  Seconds played{0};          // a step, as predicted
};

// Steps one after the other.
Recorded run_for_real(const Graph& graph, Plan plan, const Hold& hold, std::int64_t steps) {
  plan.steps_in_flight = 1;
  const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
  Recorded made{lower(blueprint, ListKind::train), {}, {}};
  made.played = Seconds(play(blueprint, made.list, KnownCosts(hold)).step_seconds);
  const TemporaryFolder folder;
  const auto file = folder.path() / trace::store_name;
  Executor executor(graph, plan, null_options(hold));
  const auto recorder = std::make_shared<trace::Recorder>(trace::RecorderOptions{.file = file});
  executor.record(recorder);
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    const StepResult result =
        executor.wait(executor.submit(ListKind::train, no_samples(plan, step)));
    made.took.push_back(result.finished - begin);
  }
  executor.end_record();
  recorder->finish();
  made.record = trace::read_store(file);
  return made;
}

// A step of the record with every task at the earliest time that what it waited for allows, and
// exactly as long as it was to take: chance has no say in which tasks are critical.
trace::Record without_chance(const Recorded& made, std::int64_t step, const Hold& hold) {
  trace::Record record = made.record;
  std::erase_if(record.tasks, [&](const trace::Task& task) { return task.step != step; });
  record.marks.clear();
  record.metadata.clear();
  const std::int64_t first = record.tasks.front().id;
  for (trace::Task& task : record.tasks) {
    task.start = 0;
    for (const trace::Dependency& each : record.dependencies)
      if (each.task == task.id && each.on >= first)
        task.start =
            std::max(task.start, record.tasks[static_cast<std::size_t>(each.on - first)].end);
    const Task& listed = made.list.tasks[static_cast<std::size_t>(task.id - first)];
    task.end = task.start + std::chrono::round<std::chrono::nanoseconds>(hold(listed)).count();
    task.submit = task.ready = task.start;
  }
  std::erase_if(record.dependencies, [&](const trace::Dependency& each) {
    return each.task < first || each.task >= first + std::ssize(record.tasks) || each.on < first;
  });
  return record;
}

// Places in the list of the tasks on the step's longest chain that take time.
std::vector<std::size_t> critical_tasks(const trace::Analysis& found, const trace::Record& record) {
  std::vector<std::size_t> tasks;
  for (const std::int64_t id : found.critical_path) {
    const auto place = static_cast<std::size_t>(id - record.tasks.front().id);
    if (record.tasks[place].duration() > 0) tasks.push_back(place);
  }
  return tasks;
}

TEST(NullKernels, AChainTakesTheSumOfItsTasks) {
  const Graph graph = fuse(build_model("tiny"));
  const Plan plan = plan_for(graph, 1, {.workers = 2, .chunks = {{1}}, .segments = "op"});
  // Seven operators of a millisecond, one after the other, and back at two milliseconds each, but
  // for the first: nobody asks for the gradient of samples.
  constexpr double seconds = 7 * 1e-3 + 6 * 2e-3;
  const Hold hold = [](const Task& task) {
    const bool back = has(task, Phase::backward) && task.actions.front().segment != SegmentId{0};
    return Seconds((has(task, Phase::forward) ? 1e-3 : 0) + (back ? 2e-3 : 0));
  };
  const Recorded made = run_for_real(graph, plan, hold, 3);
  std::vector<std::size_t> chain;
  Seconds sum(0);
  for (std::size_t t = 0; t < made.list.tasks.size(); ++t)
    if (hold(made.list.tasks[t]) > Seconds(0)) {
      chain.push_back(t);
      sum += hold(made.list.tasks[t]);
    }
  EXPECT_NEAR(sum.count(), seconds, 1e-9);
  EXPECT_NEAR(made.played.count(), seconds, play_error);
  for (const Seconds took : made.took) EXPECT_GE(took, sum);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const trace::Record exact = without_chance(made, step, hold);
    const trace::Analysis found = trace::analyse(exact, trace::whole_window(exact));
    EXPECT_EQ(critical_tasks(found, exact), chain);
    EXPECT_NEAR(trace::seconds(found.critical), seconds, 1e-9);
    // Real times are only known to be no shorter.
    const trace::Analysis real =
        trace::analyse(made.record, trace::window_of_steps(made.record, step, step));
    EXPECT_GE(trace::seconds(real.critical), seconds);
  }
}

// Four chunks of 1, 2, 3 and 4 samples, a millisecond for each sample, and an end of 2 ms that
// waits for all.
TEST(NullKernels, AForkEndsWithItsLastBranch) {
  const Graph graph = fuse(build_model("tiny"));
  const Hold hold = [](const Task& task) {
    if (has(task, Phase::reduce)) return Seconds(2e-3);
    return has(task, Phase::forward) ? Seconds(1e-3 * (task.actions.front().chunk.value + 1))
                                     : Seconds(0);
  };
  // With a worker for each chunk the longest decides; two share ten milliseconds evenly: 4 + 1 and
  // 3 + 2; one does all.
  const std::vector<std::pair<int, double>> cases{{4, 6e-3}, {2, 7e-3}, {1, 12e-3}};
  for (const auto& [workers, seconds] : cases) {
    SCOPED_TRACE(workers);
    Plan plan = plan_for(graph, 10, {.workers = 4, .chunks = {{1, 2, 3, 4}}, .segments = "step"});
    plan.nodes.front().groups.front().workers = workers;
    plan.gather_loads = true;
    const Recorded made = run_for_real(graph, plan, hold, 3);
    EXPECT_NEAR(made.played.count(), seconds, play_error);
    for (const Seconds took : made.took) EXPECT_GE(took, Seconds(seconds));
    for (std::int64_t step = 1; step <= 3; ++step) {
      const trace::Record exact = without_chance(made, step, hold);
      const trace::Analysis found = trace::analyse(exact, trace::whole_window(exact));
      const std::vector<std::size_t> critical = critical_tasks(found, exact);
      ASSERT_EQ(critical.size(), 2u);
      EXPECT_EQ(made.list.tasks[critical[0]].actions.front().chunk, ChunkId{3});
      EXPECT_TRUE(has(made.list.tasks[critical[1]], Phase::reduce));
      EXPECT_NEAR(trace::seconds(found.critical), 6e-3, 1e-9);
      const trace::Analysis real =
          trace::analyse(made.record, trace::window_of_steps(made.record, step, step));
      EXPECT_GE(real.work, 12'000'000);
      EXPECT_GE(trace::seconds(real.critical), 6e-3);
    }
  }
}

}  // namespace
}  // namespace regatta
