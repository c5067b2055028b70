// Masked weights are zero from the first step to the last, by every optimizer and plan, and a mask
// that masks nothing changes nothing.
#include "train/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "models/models.h"
#include "support/error_text.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/weights.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Mask random_mask(const Graph& graph, float keep) {
  Mask mask = whole_mask(graph);
  for (MaskTensor& tensor : mask.tensors)
    for (std::int64_t i = 0; i < tensor.count(); ++i)
      tensor.set(i,
                 random_uniform(3, stream_of(tensor.name), static_cast<std::uint64_t>(i)) < keep);
  return mask;
}

JobOptions small_options() {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@10";
  options.batch = 4;
  options.workers = 1;
  options.plan.deterministic = true;
  return options;
}

TEST(Maskable, AreWeightsOfConvolutionsAndDenseLayers) {
  std::vector<std::string> names;
  for (const MaskTensor& tensor : whole_mask(small_network()).tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("conv.weight", "dense.weight"));
}

TEST(Maskable, AreTheSameOfAFusedNetwork) {
  for (const char* name : {"resnet20", "mobilenet_v2", "squeezenet1_1"}) {
    const Graph network = build_model(name);
    EXPECT_EQ(whole_mask(fuse(network)).fingerprint(), whole_mask(network).fingerprint()) << name;
  }
}

TEST(MaskFit, NamesWhatDoesNotFit) {
  const Graph graph = small_network();
  Mask mask = whole_mask(graph);
  EXPECT_EQ(error_text([&] { require_fit(mask, graph, "m"); }), "no error");
  EXPECT_THAT(error_text([&] { require_fit(mask, build_model("lenet5"), "m"); }),
              HasSubstr("mask 'm' is for small#"));
  Mask surplus = mask;
  surplus.tensors.push_back(whole_tensor("bn.weight", {3}));
  EXPECT_THAT(error_text([&] { require_fit(surplus, graph, "m"); }),
              HasSubstr("masks 'bn.weight'"));
  mask.tensors[0] = whole_tensor("conv.weight", {3, 9});
  EXPECT_THAT(error_text([&] { require_fit(mask, graph, "m"); }),
              HasSubstr("has 'conv.weight' as 3x9, the network as 3x1x3x3"));
}

TEST(MaskFit, OtherClassesLeaveTheLastLayerWhole) {
  const Graph ten = build_model("lenet5"), six = build_model("lenet5", {.classes = 6});
  const Mask mask = random_mask(ten, 0.5f), moved = mask_for(six, mask);
  EXPECT_EQ(error_text([&] { require_fit(moved, six, "m"); }), "no error");
  EXPECT_EQ(*moved.find("conv2.weight"), *mask.find("conv2.weight"));
  EXPECT_EQ(moved.find("fc3.weight")->density(), 1);
}

// Looks at parameters after every step.
struct Watch : Recorder {
  Watch(const Executor& of, const Mask& by) : executor(of), mask(by) { rest_every = 1; }
  void on_rest(const TrainState& state) override {
    Recorder::on_rest(state);
    const auto& parameters = executor.graph().parameters();
    for (std::uint32_t p = 0; p < parameters.size(); ++p) {
      const MaskTensor* tensor = mask.find(parameters[p].name);
      if (!tensor) continue;
      std::vector<std::vector<float>> all{executor.parameter(ParameterId{p})};
      const OptimizerSettings& by = executor.optimizer();
      for (int m = 0; m < most_moments; ++m)
        if (keeps_moment(by, m)) all.push_back(executor.moment(ParameterId{p}, m));
      if (by.ema > 0) all.push_back(executor.average(ParameterId{p}));
      for (const std::vector<float>& values : all)
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (!tensor->keeps(static_cast<std::int64_t>(i)) && values[i] != 0) ++wrong;
          if (tensor->keeps(static_cast<std::int64_t>(i)) && values[i] != 0) ++alive;
        }
    }
  }
  const Executor& executor;
  const Mask& mask;
  int wrong = 0, alive = 0;
};

std::vector<OptimizerSettings> rules() {
  std::vector<OptimizerSettings> all;
  using enum OptimizerKind;
  for (const OptimizerKind kind : {sgd, nesterov, adam, adamw, rmsprop, lars}) {
    OptimizerSettings settings = default_settings(kind);
    settings.weight_decay = 0.01;
    if (kind == rmsprop) settings.momentum = 0.9;
    all.push_back(settings);
    settings.clip_norm = 0.1;
    settings.ema = 0.9;
    all.push_back(settings);
    settings.clip_norm = 0;
    settings.clip_value = 0.01;
    all.push_back(settings);
  }
  return all;
}

TEST(MaskedTraining, KeepsMaskedWeightsAtZeroByEveryRule) {
  for (const OptimizerSettings& settings : rules())
    for (const Reduction reduction : {Reduction::slots, Reduction::redux, Reduction::loop}) {
      JobOptions options = small_options();
      options.optimizer = settings;
      options.accumulate = 2;
      options.plan.deterministic = false;
      options.plan.reduction = reduction;
      options.plan.chunks = {{1, 3}};
      options.plan.segments = "op";
      options.mask = random_mask(small_network(), 0.4f);
      const TrainJob job = make_job(options);
      Executor executor(job.graph, job.plan, job.exec_options(true));
      initialise_weights(executor, 1);
      Watch watch(executor, *job.mask);
      TrainGoal goal;
      goal.last_step = 5;
      watch.on_rest({});  // before the first forward
      train(executor, job.recipe, job.data, nullptr, goal, watch);
      EXPECT_EQ(watch.wrong, 0) << optimizer_name(settings.kind);
      EXPECT_GT(watch.alive, 100) << optimizer_name(settings.kind);
    }
}

Weights trained(const JobOptions& options) {
  const TrainJob job = make_job(options);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, 1);
  TrainGoal goal;
  goal.last_step = 5;
  Recorder recorder;
  train(executor, job.recipe, job.data, nullptr, goal, recorder);
  return weights_from(job.graph, weights_of(executor), "run");
}

TEST(MaskedTraining, WithAMaskOfOnesHasTheBitsOfTrainingWithout) {
  for (const OptimizerSettings& settings : rules()) {
    JobOptions options = small_options();
    options.optimizer = settings;
    const Weights without = trained(options);
    options.mask = whole_mask(small_network());
    EXPECT_EQ(trained(options), without) << optimizer_name(settings.kind);
  }
}

TEST(MaskedTraining, HasTheSameBitsOnAnyWorkers) {
  JobOptions options = small_options();
  options.optimizer.clip_norm = 0.5;
  options.mask = random_mask(small_network(), 0.5f);
  const Weights alone = trained(options);
  options.workers = 2;
  EXPECT_EQ(trained(options), alone);
}

// A late reset: the weights and the optimizer's memory of a dense run, then a mask.
TEST(MaskedTraining, ForgetsTheMomentumOfMaskedWeights) {
  const TemporaryFolder folder;
  TrainJob job = make_job(small_options());
  TrainGoal goal;
  goal.last_step = 4;
  {
    Executor dense(job.graph, job.plan, job.exec_options(true));
    initialise_weights(dense, 1);
    Recorder recorder;
    train(dense, job.recipe, job.data, nullptr, goal, recorder);
    save_checkpoint(folder.path(), dense, {.step = 4});
  }
  JobOptions options = small_options();
  options.mask = random_mask(small_network(), 0.5f);
  job = make_job(options);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  goal.from = load_checkpoint(latest_checkpoint(folder.path()), executor);
  goal.last_step = 8;
  Watch watch(executor, *job.mask);
  watch.on_rest({});
  train(executor, job.recipe, job.data, nullptr, goal, watch);
  EXPECT_EQ(watch.wrong, 0);
}

TEST(MaskedTraining, IsARecipeOfItsOwn) {
  JobOptions options = small_options();
  const std::string dense = make_job(options).recipe.fingerprint();
  options.mask = random_mask(small_network(), 0.5f);
  const Recipe half = make_job(options).recipe;
  options.mask = random_mask(small_network(), 0.4f);
  EXPECT_NE(half.fingerprint(), dense);
  EXPECT_NE(half.fingerprint(), make_job(options).recipe.fingerprint());
  EXPECT_EQ(recipe_from_json(half.to_json()).fingerprint(), half.fingerprint());
}

TEST(MaskedTraining, GradientsOfMaskedWeightsReadAsZero) {
  JobOptions options = small_options();
  options.mask = random_mask(small_network(), 0.5f);
  const TrainJob job = make_job(options);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, 1);
  TrainGoal goal;
  goal.last_step = 1;
  Recorder recorder;
  train(executor, job.recipe, job.data, nullptr, goal, recorder);
  TensorFile gradients = gradients_of(executor), again = gradients;
  zero_masked(*job.mask, again);
  for (std::size_t i = 0; i < again.tensors.size(); ++i)
    EXPECT_EQ(gradients.tensors[i].bytes, again.tensors[i].bytes) << again.tensors[i].name;
}

}  // namespace
}  // namespace regatta
