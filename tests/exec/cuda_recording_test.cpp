// What is recorded of a GPU: tasks one after another, kernels by name, links and joules. Skipped
// where there is no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/gpu_here.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"
#include "trace/analysis.h"
#include "trace/store.h"

namespace regatta {
namespace {

class CudaRecording : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_here()) GTEST_SKIP() << "no GPU here";
  }

  void train(const std::vector<std::string>& flags) {
    const auto run = folder_.path() / ("run" + std::to_string(runs_++));
    std::vector<std::string> arguments{"train",   "--model", "lenet5", "--data", "digits-synth",
                                       "--batch", "64",      "--test", "none",   "--steps",
                                       "40",      "--trace", "ops",    "--out",  run.string()};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramRun result = run_regatta(arguments);
    ASSERT_EQ(result.code, 0) << result.err;
    said = result.err;
    record = trace::read_store(run / trace::store_name);
    ASSERT_FALSE(record.tasks.empty());
    EXPECT_EQ(trace::faults(record), std::vector<std::string>{});
  }

  std::int32_t gpu() const {
    const auto found = std::ranges::find(record.workers, "cuda", &trace::Worker::kind);
    return static_cast<std::int32_t>(found - record.workers.begin());
  }
  std::vector<trace::Task> gpu_tasks() const {
    std::vector<trace::Task> tasks;
    for (const trace::Task& task : record.tasks)
      if (task.worker == gpu()) tasks.push_back(task);
    std::ranges::sort(tasks, {}, &trace::Task::end);
    return tasks;
  }

  void expect_times_add_up() const {
    const trace::Analysis found = trace::analyse(record, trace::whole_window(record));
    for (const trace::WorkerUse& use : found.workers)
      EXPECT_EQ(use.busy + use.idle + use.overhead, found.wall());
    EXPECT_GT(found.workers[static_cast<std::size_t>(gpu())].busy, 0);
    EXPECT_LE(found.efficiency(), 1.0);
  }

  // StarPU may notice an end late, but never before it.
  void expect_one_after_another() const {
    const std::vector<trace::Task> tasks = gpu_tasks();
    ASSERT_GT(tasks.size(), 10u);
    for (std::size_t i = 1; i < tasks.size(); ++i) EXPECT_GE(tasks[i].start, tasks[i - 1].end);
    const auto took = [](const trace::Task& task) { return task.duration() > 0; };
    EXPECT_GT(std::ranges::count_if(tasks, took), std::ssize(tasks) * 9 / 10);
  }

  TemporaryFolder folder_;
  int runs_ = 0;
  trace::Record record;
  std::string said;
};

TEST_F(CudaRecording, TasksFollowEachOtherAndTimesAddUp) {
  for (const char* segments : {"step", "op"}) {
    SCOPED_TRACE(segments);
    train({"--devices", "cuda", "--segments", segments});
    expect_times_add_up();
    expect_one_after_another();
  }
}

TEST_F(CudaRecording, LinksCountTheBytesOfTheSamplesAndLosses) {
  train({"--devices", "cuda"});
  std::int64_t there = 0, back = 0;
  for (const trace::Link& link : record.links) {
    if (link.to.find("CUDA") != std::string::npos) there += link.bytes;
    if (link.from.find("CUDA") != std::string::npos) back += link.bytes;
  }
  // Twenty steps, but for what was under way when they began.
  EXPECT_GE(there, 18 * 64 * 28 * 28);
  EXPECT_LT(there, 30 * 64 * 28 * 28) << "not the whole run's";
  EXPECT_GE(back, 18 * 64 * 8);
}

TEST_F(CudaRecording, EveryStepHasTheGpusJoules) {
  train({"--devices", "cuda"});
  std::set<std::int64_t> steps;
  for (const trace::Counter& counter : record.counters)
    if (counter.name == "energy gpu 0" && counter.value >= 0) steps.insert(counter.step);
  EXPECT_EQ(steps.size(), 20u);
}

TEST_F(CudaRecording, KernelsHaveNamesTasksAndTheRecordsClock) {
  train({"--devices", "cuda", "--segments", "block"});
  if (said.find("kernels are not timed") != std::string::npos) GTEST_SKIP() << said;
  std::map<std::int64_t, trace::Task> tasks;
  for (const trace::Task& task : gpu_tasks()) tasks[task.id] = task;
  std::set<std::string> names;
  std::set<std::int64_t> with_kernels;
  std::int64_t astray = 0, kernels = 0;
  for (const trace::Operator& each : record.operators) {
    const trace::OperatorKind& kind = record.operator_kinds[static_cast<std::size_t>(each.kind)];
    if (kind.op != "kernel") continue;
    ++kernels;
    names.insert(kind.name);
    EXPECT_EQ(each.worker, gpu());
    ASSERT_TRUE(tasks.contains(each.task)) << kind.name;
    with_kernels.insert(each.task);
    const trace::Task& task = tasks.at(each.task);
    constexpr trace::Time slack = 100'000;
    if (each.start < task.submit - slack || each.end > task.end + slack) ++astray;
  }
  ASSERT_GT(kernels, 20 * 10);
  EXPECT_LE(astray, kernels / 100) << "of " << kernels << " kernels";
  EXPECT_GT(std::ssize(with_kernels), std::ssize(tasks) / 2);
  EXPECT_TRUE(names.contains("take_step")) << "the update, in a replayed graph";
}

TEST_F(CudaRecording, StarPUsReductionIsSeenOnWhicheverDeviceAdds) {
  train({"--devices", "cpu,cuda", "--workers", "2", "--shares", "16,48", "--reduction", "redux"});
  expect_times_add_up();
  expect_one_after_another();
  const auto reduces = [&](const trace::Task& task) {
    return record.kind_of(task).phases == "reduce" && record.kind_of(task).segment < 0;
  };
  EXPECT_TRUE(std::ranges::any_of(record.tasks, reduces));
}

}  // namespace
}  // namespace regatta
