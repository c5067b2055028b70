// Task lists of recipes: clipping meets before any update, micro-batches add up before one step.
#include <gtest/gtest.h>

#include "models/models.h"
#include "support/executor_run.h"
#include "tasks/task_list.h"

namespace regatta {
namespace {

Graph network() {
  return fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
}

std::vector<PlanOptions> plans() {
  std::vector<PlanOptions> all;
  for (const char* segments : {"step", "block", "op"})
    for (const std::vector<std::int64_t>& chunks :
         {std::vector<std::int64_t>{1}, std::vector<std::int64_t>{3, 1, 8}})
      for (const Reduction reduction : {Reduction::slots, Reduction::redux, Reduction::loop})
        all.push_back(
            {.workers = 2, .chunks = chunks, .segments = segments, .reduction = reduction});
  for (const char* segments : {"step", "block"}) {
    PlanOptions gpu{.workers = 2, .segments = segments, .devices = {DeviceKind::cuda}};
    all.push_back(gpu);
    gpu.devices = {DeviceKind::cpu, DeviceKind::cuda};
    gpu.shares = {5, 7};
    all.push_back(gpu);
  }
  return all;
}

OptimizerSettings everything() {
  OptimizerSettings settings = default_settings(OptimizerKind::adam);
  settings.clip_norm = 1;
  settings.ema = 0.9;
  return settings;
}

TaskList lowered(const Graph& graph, const PlanOptions& options, ListKind job,
                 const OptimizerSettings& optimizer) {
  return lower(make_blueprint(graph, plan_for(graph, 12, options), {.optimizer = optimizer}, true),
               job);
}

std::vector<Phase> phases(const TaskList& list) {
  std::vector<Phase> found;
  for (const Task& task : list.tasks)
    for (const Action& action : task.actions) found.push_back(action.phase);
  return found;
}

TEST(StepLists, AreSoundForEveryPlan) {
  const Graph graph = network();
  for (const PlanOptions& options : plans())
    for (const ListKind job : {ListKind::train, ListKind::first, ListKind::middle, ListKind::last})
      EXPECT_EQ(faults(lowered(graph, options, job, everything())), std::vector<std::string>{});
}

TEST(StepLists, OnlyTheLastMicroBatchTakesTheStep) {
  const Graph graph = network();
  for (const PlanOptions& options : plans())
    for (const ListKind job : {ListKind::first, ListKind::middle})
      for (const Phase phase : phases(lowered(graph, options, job, everything())))
        EXPECT_TRUE(phase != Phase::reduce && phase != Phase::measure && phase != Phase::clip &&
                    phase != Phase::update && phase != Phase::pack);
}

TEST(StepLists, LaterMicroBatchesReadTheGradientsTheyAddTo) {
  const Graph graph = network();
  const PlanOptions options{.workers = 2, .chunks = std::vector<std::int64_t>{3, 1, 8}};
  for (const ListKind job : {ListKind::first, ListKind::middle, ListKind::last}) {
    const TaskList list = lowered(graph, options, job, {});
    std::size_t written = 0;
    for (const Task& task : list.tasks)
      for (const Access& access : task.accesses)
        written +=
            list.buffers[access.buffer].kind == BufferKind::gradient && access.mode == Mode::write;
    EXPECT_EQ(written > 0, job == ListKind::first);
  }
}

TEST(StepLists, EveryUpdateWaitsForTheWholeGradientsNorm) {
  const Graph graph = network();
  for (const PlanOptions& options : plans()) {
    const std::vector<Phase> found = phases(lowered(graph, options, ListKind::train, everything()));
    const auto clip = std::ranges::find(found, Phase::clip);
    ASSERT_NE(clip, found.end());
    EXPECT_EQ(std::count(clip, found.end(), Phase::measure), 0);
    EXPECT_EQ(std::count(found.begin(), clip, Phase::update), 0);
    EXPECT_EQ(std::ranges::count(found, Phase::measure), std::ranges::count(found, Phase::update));
    EXPECT_EQ(std::ranges::count(found, Phase::clip), 1);
  }
}

TEST(StepLists, KeepWhatTheOptimizerNeedsAndNoMore) {
  const Graph graph = network();
  const auto moments = [&](OptimizerKind kind) {
    std::size_t bytes = 0;
    for (const Buffer& buffer :
         lowered(graph, plans()[0], ListKind::train, default_settings(kind)).buffers)
      if (buffer.kind == BufferKind::moment || buffer.kind == BufferKind::average)
        bytes += buffer.bytes;
    return bytes;
  };
  EXPECT_EQ(moments(OptimizerKind::adam), 2 * moments(OptimizerKind::sgd));
  EXPECT_EQ(moments(OptimizerKind::rmsprop), moments(OptimizerKind::sgd));  // without momentum
}

}  // namespace
}  // namespace regatta
