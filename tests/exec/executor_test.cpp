#include "exec/executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "exec/runtime.h"
#include "exec/teams.h"
#include "models/models.h"
#include "parity/formula.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

ExecOptions float_samples(std::size_t channels) {
  return {{.samples = Dtype::f32},
          {1.0f, std::vector<float>(channels, 0.0f), std::vector<float>(channels, 1.0f)},
          true};
}

StepInput zeros_of(std::int64_t samples, std::size_t bytes) {
  StepInput input;
  input.samples = samples;
  input.load = [bytes](std::int64_t, std::int64_t count, std::byte* data, Target* targets) {
    std::fill_n(data, static_cast<std::size_t>(count) * bytes, std::byte{0});
    std::fill_n(targets, count, Target::of(0));
  };
  return input;
}

TEST(Executor, AShortBatchGivesTheGradientOfJustThoseSamples) {
  const Graph graph = fuse(build_model("lenet5"));
  ReferenceInput<float> all = make_input<float>(graph, 7);
  const ReferenceResult<float> truth = reference_run(graph, all);
  // The plan cuts 64 samples into chunks; with 7 some chunks get one and some none.
  for (const Reduction reduction : {Reduction::slots, Reduction::redux, Reduction::loop}) {
    PlanOptions options;
    options.workers = 2;
    options.chunks = std::vector<std::int64_t>{16};
    options.reduction = reduction;
    const ExecutedRun run = execute(graph, plan_for(graph, 64, options), all, {}, 1);
    EXPECT_NEAR(run.losses[0], truth.loss, 1e-5);
    for (std::size_t p = 0; p < run.gradients.size(); ++p)
      EXPECT_LT(relative_distance(run.gradients[p], truth.parameter_gradients[p]), 1e-4)
          << graph.parameters()[p].name << " " << reduction_name(reduction);
  }
}

TEST(Executor, WhatATaskThrowsReachesWhoeverWaits) {
  const Graph graph = fuse(build_model("tiny"));
  Executor executor(graph, plan_for(graph, 8, {.workers = 2}), float_samples(1));
  StepInput input = zeros_of(8, 784 * sizeof(float));
  input.load = [](auto...) { throw InputError("the disk is gone"); };
  const Ticket ticket = executor.submit(ListKind::train, input);
  EXPECT_THROW(executor.wait(ticket), InputError);
  // The workers live on.
  EXPECT_EQ(executor.wait(executor.submit(ListKind::train, zeros_of(8, 784 * sizeof(float))))
                .losses.size(),
            8u);
}

TEST(Executor, ListsAreThroughThoughTheirTasksFail) {
  const Graph graph = fuse(build_model("lenet5"));
  Plan plan =
      plan_for(graph, 8, {.workers = 2, .chunks = std::vector<std::int64_t>{4}, .segments = "op"});
  plan.steps_in_flight = 2;
  Executor executor(graph, plan, float_samples(1));
  StepInput broken = zeros_of(8, 784 * sizeof(float));
  broken.load = [](auto...) { throw InputError("the disk is gone"); };
  for (int i = 0; i < 3; ++i) {
    const Ticket first = executor.submit(ListKind::train, broken);
    const Ticket second = executor.submit(ListKind::train, zeros_of(8, 784 * sizeof(float)));
    EXPECT_THROW(executor.wait(first), InputError);
    EXPECT_EQ(executor.wait(second).losses.size(), 8u);
  }
}

TEST(Executor, MomentumThatHasFadedIsZeroAndNotADenormalNumber) {
  const Graph graph = fuse(build_model("tiny"));
  for (const int team : {1, 2}) {
    ExecOptions exec = float_samples(1);
    exec.numbers.optimizer.momentum = 0.9;
    PlanOptions plan{.workers = 2};
    plan.team = team;
    Executor executor(graph, plan_for(graph, 8, plan), exec);
    // All parameters are zero, so the first layer's gradient is too.
    executor.set_moment(
        ParameterId{0}, 0,
        std::vector<float>(
            static_cast<std::size_t>(graph.parameter(ParameterId{0}).shape.elements()), 1.2e-38f));
    executor.wait(executor.submit(ListKind::train, zeros_of(8, 784 * sizeof(float))));
    for (const float value : executor.moment(ParameterId{0}, 0)) ASSERT_EQ(value, 0.0f);
  }
}

std::int64_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

TEST(Executor, MemoryDoesNotGrowOverFiveHundredSteps) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  PlanOptions options;
  options.workers = 2;
  options.chunks = std::vector<std::int64_t>{2};
  options.segments = "block";
  Executor executor(graph, plan_for(graph, 2, options), float_samples(3));
  const StepInput input = zeros_of(2, 3 * 32 * 32 * sizeof(float));
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) executor.wait(executor.submit(ListKind::train, input));
  };
  steps(60);
  const std::int64_t before = resident_kib();
  steps(500);
  EXPECT_LE(resident_kib() - before, 2048);  // a leak of one task list a step would be 30 MiB
}

TEST(Runtime, AnUnknownSchedulerGetsTheNearestName) {
  const Graph graph = fuse(build_model("tiny"));
  Plan plan = plan_for(graph, 8, {.workers = 1});
  plan.scheduler = "eagr";
  try {
    Executor executor(graph, plan, float_samples(1));
    FAIL() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'eager'?"), std::string::npos);
  }
}

TEST(Runtime, TheThreadThatSubmitsMayRunWhereItMightBefore) {
  const char* set = std::getenv("STARPU_WORKERS_NOBIND");
  const std::string kept = set ? set : "";
  ::unsetenv("STARPU_WORKERS_NOBIND");
  const std::vector<int> before = allowed_cpus();
  for (const int team : {1, 2}) {
    const Runtime runtime({.cpu_workers = 1, .team = team});
    EXPECT_EQ(allowed_cpus(), before);
  }
  EXPECT_EQ(std::getenv("STARPU_WORKERS_NOBIND"), nullptr);
  if (set) ::setenv("STARPU_WORKERS_NOBIND", kept.c_str(), 1);
}

TEST(Runtime, VariablesThatStarPuWouldAbortOnAreNamed) {
  for (const char* bad : {"abc", "-3", "2x", ""}) {
    ::setenv("STARPU_NCPU", bad, 1);
    EXPECT_THROW(check_starpu_environment(), InputError) << bad;
  }
  ::unsetenv("STARPU_NCPU");
  ::setenv("STARPU_PERF_MODEL_DIR", "/proc/nowhere", 1);
  EXPECT_THROW(check_starpu_environment(), InputError);
  ::unsetenv("STARPU_PERF_MODEL_DIR");
  EXPECT_NO_THROW(check_starpu_environment());
}

}  // namespace
}  // namespace regatta
