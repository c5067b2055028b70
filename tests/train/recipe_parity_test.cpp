// Optimizers, schedules, clipping, smoothing, accumulation, averaging and mixup through the whole
// program against PyTorch's float64, with whole batches and uneven chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "models/models.h"
#include "parity/formula.h"
#include "parity/recipes.h"
#include "support/executor_run.h"
#include "support/gpu_here.h"
#include "support/small_run.h"
#include "train/job.h"

namespace regatta {
namespace {

class FormulaData : public Dataset {
 public:
  FormulaData(const Graph& graph, std::int64_t count)
      : images_(make_images(graph, count)), labels_(make_labels(graph, count)) {
    info_.spec = "formula";
    info_.sample = graph.node(graph.input()).shape;
    info_.count = count;
    info_.classes = static_cast<int>(graph.classes());
    info_.dtype = Dtype::f32;
    info_.mean = {0};
    info_.deviation = {1};
  }

  using Dataset::read;
  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    const auto elements = static_cast<std::size_t>(info_.sample.elements());
    for (const std::int64_t index : indices) {
      const auto at = static_cast<std::size_t>(index);
      std::memcpy(samples, images_.data() + at * elements, elements * sizeof(float));
      samples += elements * sizeof(float);
      *labels++ = labels_[at];
    }
  }

 private:
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
};

// Returns how many CUDA graphs were made.
std::size_t expect_parity(const std::string& name, const PlanOptions& options) {
  const RecipeFixture fixture(name);
  TrainJob job;
  job.recipe = fixture.recipe();
  job.graph = graph_for(job.recipe, build_model(job.recipe.model));
  if (std::optional<Mask> mask = fixture.mask(job.graph)) {
    job.recipe.mask = mask->fingerprint();
    set_mask(job, std::move(*mask), name);
  }
  job.plan = plan_for(job.graph, job.recipe.batch, options);
  job.data = std::make_shared<FormulaData>(job.graph, 8);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  const Tensors<float> weights = make_weights(job.graph);
  for (std::uint32_t i = 0; i < weights.size(); ++i)
    executor.set_parameter(ParameterId{i}, weights[i]);
  executor.wait(executor.submit(ListKind::prepare, {}));

  TrainGoal goal;
  goal.last_step = fixture.steps();
  Recorder recorder;
  train(executor, job.recipe, job.data, nullptr, goal, recorder);

  std::vector<double> losses;
  for (const StepRecord& step : recorder.steps) losses.push_back(step.loss);
  EXPECT_EQ(fixture.compare_losses(losses, {}), Failures{});
  Tensors<float> parameters, averages;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    parameters.push_back(executor.parameter(ParameterId{i}));
    if (fixture.averages()) averages.push_back(executor.average(ParameterId{i}));
  }
  EXPECT_EQ(fixture.compare("parameters", job.graph, parameters, {}), Failures{});
  if (fixture.averages()) {
    EXPECT_EQ(fixture.compare("average", job.graph, averages, {}), Failures{});
  }
  return executor.graph_captures();
}

std::vector<std::int64_t> uneven(std::int64_t batch) {
  if (batch == 8) return {3, 1, 4};
  return {1, batch - 1};
}

const std::vector<std::string> recipes{"sgd",
                                       "nesterov",
                                       "adam",
                                       "adamw",
                                       "rmsprop",
                                       "rmsprop_momentum",
                                       "lars",
                                       "clip_norm",
                                       "clip_norm_adam",
                                       "clip_value",
                                       "ema",
                                       "label_smoothing",
                                       "mixup",
                                       "accumulate",
                                       "accumulate_adam",
                                       "step",
                                       "cosine",
                                       "one_cycle",
                                       "one_cycle_adam",
                                       "masked_sgd",
                                       "masked_nesterov",
                                       "masked_adam",
                                       "masked_adamw",
                                       "masked_rmsprop",
                                       "masked_lars",
                                       "masked_clip_norm",
                                       "masked_clip_value",
                                       "masked_ema",
                                       "masked_accumulate"};

TEST(RecipeFixtures, AreAllCompared) {
  std::vector<std::string> compared = recipes, there = parity_recipes();
  std::ranges::sort(compared);
  std::ranges::sort(there);
  EXPECT_EQ(compared, there);
}

class RecipeParity : public testing::TestWithParam<std::string> {};

TEST_P(RecipeParity, WithWholeBatches) {
  expect_parity(GetParam(), {.workers = 2, .chunks = std::vector<std::int64_t>{1}});
}

TEST_P(RecipeParity, WithUnevenChunksAndSegments) {
  const std::int64_t batch = RecipeFixture(GetParam()).recipe().batch;
  expect_parity(GetParam(), {.workers = 2, .chunks = uneven(batch), .segments = "block"});
}

INSTANTIATE_TEST_SUITE_P(EveryRecipe, RecipeParity, testing::ValuesIn(recipes),
                         [](const auto& each) { return each.param; });

class CudaRecipeParity : public RecipeParity {
 protected:
  void SetUp() override {
    if (!gpu_here()) GTEST_SKIP() << "no GPU here";
  }
  static PlanOptions on(std::vector<DeviceKind> devices) {
    PlanOptions options;
    options.workers = 2;
    options.devices = std::move(devices);
    return options;
  }
};

// Learning rates and numbers of steps change all the time; the graphs must follow them.
TEST_P(CudaRecipeParity, WithWholeBatchesAndNoGraphMadeTwice) {
  PlanOptions options = on({DeviceKind::cuda});
  options.chunks = std::vector<std::int64_t>{1};
  const Recipe recipe = RecipeFixture(GetParam()).recipe();
  const Graph graph = graph_for(recipe, build_model(recipe.model));
  const int copies = plan_for(graph, recipe.batch, options).steps_in_flight;
  const int lists = recipe.accumulate > 1 ? 3 : 1;
  EXPECT_LE(expect_parity(GetParam(), options), static_cast<std::size_t>(copies * lists));
}

TEST_P(CudaRecipeParity, WithUnevenChunksAndSegments) {
  PlanOptions options = on({DeviceKind::cuda});
  options.chunks = uneven(RecipeFixture(GetParam()).recipe().batch);
  options.segments = "block";
  expect_parity(GetParam(), options);
}

TEST_P(CudaRecipeParity, BesideCpus) {
  PlanOptions options = on({DeviceKind::cpu, DeviceKind::cuda});
  const std::int64_t batch = RecipeFixture(GetParam()).recipe().batch;
  options.shares = std::vector<std::int64_t>{1, batch - 1};
  expect_parity(GetParam(), options);
}

INSTANTIATE_TEST_SUITE_P(EveryRecipe, CudaRecipeParity, testing::ValuesIn(recipes),
                         [](const auto& each) { return each.param; });

TEST(Accumulation, WorksWithEveryReduction) {
  for (const Reduction reduction : {Reduction::slots, Reduction::redux, Reduction::loop})
    for (const std::vector<std::int64_t>& chunks : {std::vector<std::int64_t>{1}, uneven(3)})
      expect_parity("accumulate", {.workers = 2, .chunks = chunks, .reduction = reduction});
}

}  // namespace
}  // namespace regatta
