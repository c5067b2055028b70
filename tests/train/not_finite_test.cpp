// A loss that is not a number ends the run: it says where that began and leaves parameters alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/builder.h"
#include "support/error_text.h"
#include "support/executor_run.h"
#include "support/gpu_here.h"
#include "support/small_run.h"
#include "train/weights.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Graph two_layers() {
  NetBuilder net("two", {1, 4, 4});
  NodeId x = net.relu(net.conv("first", net.input(), {.channels = 3, .kernel = 3}));
  x = net.dense("second", x, 5);
  x = net.dense("third", net.relu(x), 3);
  return std::move(net).finish(x);
}

// Twelve images of ones, one of which may hold something else.
class Images : public Dataset {
 public:
  explicit Images(std::int64_t bad = -1, float with = 0) : bad_(bad), with_(with) {
    info_.spec = "ones";
    info_.sample = {1, 4, 4};
    info_.count = 12;
    info_.classes = 3;
    info_.dtype = Dtype::f32;
    info_.mean = {0};
    info_.deviation = {1};
  }

  using Dataset::read;
  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    auto* values = reinterpret_cast<float*>(samples);
    for (const std::int64_t index : indices) {
      std::fill_n(values, 16, index == bad_ ? with_ : 1.0f);
      values += 16;
      *labels++ = static_cast<std::int32_t>(index % 3);
    }
  }

 private:
  std::int64_t bad_;
  float with_;
};

class NotFiniteRun : public testing::Test {
 protected:
  NotFiniteRun() {
    job.recipe.model = "two";
    job.recipe.input = {1, 4, 4};
    job.recipe.classes = 3;
    job.recipe.sample_dtype = Dtype::f32;
    job.recipe.normalisation = {1.0f, {0.0f}, {1.0f}};
    job.recipe.batch = 4;
    job.recipe.shuffle = false;
    job.graph = graph_for(job.recipe, two_layers());
  }

  // What the run says; `set_up` may change weights.
  template <class SetUp>
  std::string run(const PlanOptions& options, std::shared_ptr<const Dataset> data,
                  const SetUp& set_up) {
    job.plan = plan_for(job.graph, 4, options);
    Executor executor(job.graph, job.plan, job.exec_options(true));
    initialise_weights(executor, 1);
    set_up(executor);
    TrainGoal goal;
    goal.last_step = 30;
    const std::string said =
        error_text([&] { train(executor, job.recipe, std::move(data), nullptr, goal, recorder); });
    after = weights_of(executor);
    return said;
  }

  bool unpoisoned() const {
    for (const NamedTensor& tensor : after.tensors)
      for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof(float)) {
        float value;
        std::memcpy(&value, tensor.bytes.data() + i, sizeof value);
        if (!std::isfinite(value)) return false;
      }
    return true;
  }

  // The third layer's answers are zero, its weights are huge on the way back: the loss is finite.
  void overflow_on_the_way_back(Executor& executor) const {
    for (std::uint32_t i = 0; i < job.graph.parameters().size(); ++i) {
      const Parameter& parameter = job.graph.parameters()[i];
      const auto count = static_cast<std::size_t>(parameter.shape.elements());
      if (parameter.name == "second.weight" || parameter.name == "second.bias")
        executor.set_parameter(ParameterId{i}, std::vector<float>(count, 1e-30f));
      if (parameter.name == "first.weight" || parameter.name == "first.bias")
        executor.set_parameter(ParameterId{i}, std::vector<float>(count, 1e30f));
      if (parameter.name == "third.weight") {
        std::vector<float> values(count);
        for (std::size_t k = 0; k < count; ++k) values[k] = k < 5 ? 1e20f : 0.0f;
        executor.set_parameter(ParameterId{i}, values);
      }
    }
    executor.wait(executor.submit(ListKind::prepare, {}));
  }

  static std::vector<PlanOptions> plans() {
    return {{.workers = 1, .chunks = std::vector<std::int64_t>{1}},
            {.workers = 2, .chunks = std::vector<std::int64_t>{1, 3}},
            {.workers = 2, .chunks = std::vector<std::int64_t>{4}, .segments = "op"}};
  }

  TrainJob job;
  Recorder recorder;
  TensorFile after;
};

TEST_F(NotFiniteRun, ASampleThatIsNotANumberIsNamedAndStopsItsStep) {
  for (const PlanOptions& options : plans()) {
    recorder = {};
    const auto bad = std::make_shared<Images>(6, std::nanf(""));
    EXPECT_THAT(run(options, bad, [](Executor&) {}),
                AllOf(HasSubstr("step 2: "), HasSubstr("no longer a number"),
                      HasSubstr("first in the samples")));
    EXPECT_EQ(recorder.steps.size(), 1u);
    EXPECT_TRUE(unpoisoned());
  }
}

// The same on a GPU, whose steps are on their way before the host has seen a loss.
class CudaNotFiniteRun : public NotFiniteRun {
 protected:
  void SetUp() override {
    if (!gpu_here()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_F(CudaNotFiniteRun, ASampleThatIsNotANumberIsNamedAndMovesNoParameter) {
  for (const char* segments : {"step", "op"}) {
    PlanOptions options;
    options.workers = 1;
    options.devices = {DeviceKind::cuda};
    options.segments = segments;
    recorder = {};
    EXPECT_THAT(run(options, std::make_shared<Images>(6, std::nanf("")), [](Executor&) {}),
                AllOf(HasSubstr("step 2: "), HasSubstr("no longer a number"),
                      HasSubstr("first in the samples")));
    EXPECT_TRUE(unpoisoned());
  }
}

TEST_F(NotFiniteRun, ParametersAreThoseOfTheStepBefore) {
  const PlanOptions options = plans()[1];
  run(options, std::make_shared<Images>(6, std::nanf("")), [](Executor&) {});
  const TensorFile stopped = after;
  job.plan = plan_for(job.graph, 4, options);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, 1);
  TrainGoal goal;
  goal.last_step = 1;
  train(executor, job.recipe, std::make_shared<Images>(), nullptr, goal, recorder);
  const TensorFile one_step = weights_of(executor);
  for (std::size_t i = 0; i < one_step.tensors.size(); ++i)
    EXPECT_EQ(stopped.tensors[i].bytes, one_step.tensors[i].bytes) << one_step.tensors[i].name;
}

TEST_F(NotFiniteRun, TheLayerThatOverflowsIsNamed) {
  for (const PlanOptions& options : plans()) {
    recorder = {};
    const std::string said = run(options, std::make_shared<Images>(), [&](Executor& executor) {
      for (std::uint32_t i = 0; i < job.graph.parameters().size(); ++i) {
        if (job.graph.parameters()[i].name != "second.weight") continue;
        std::vector<float> huge = executor.parameter(ParameterId{i});
        for (std::size_t k = 0; k < huge.size(); ++k) huge[k] = 3e38f;
        executor.set_parameter(ParameterId{i}, huge);
      }
      for (std::uint32_t i = 0; i < job.graph.parameters().size(); ++i)
        if (job.graph.parameters()[i].name == "first.bias")
          executor.set_parameter(ParameterId{i}, std::vector<float>(3, 50.0f));
      executor.wait(executor.submit(ListKind::prepare, {}));
    });
    EXPECT_THAT(said, AllOf(HasSubstr("step 1: "), HasSubstr("the forward of dense 'second'")));
    EXPECT_TRUE(unpoisoned());
  }
}

TEST_F(NotFiniteRun, AGradientThatOverflowsIsFoundOnTheWayBack) {
  for (const double clip : {0.0, 1.0}) {
    job.recipe.optimizer.clip_norm = clip;
    recorder = {};
    EXPECT_THAT(run(plans()[0], std::make_shared<Images>(),
                    [&](Executor& executor) { overflow_on_the_way_back(executor); }),
                AllOf(HasSubstr("step 1: the gradient is no longer a number"),
                      HasSubstr("the backward of dense 'second'")));
    EXPECT_TRUE(unpoisoned());
  }
}

TEST_F(CudaNotFiniteRun, AGradientThatOverflowsIsFoundOnTheWayBack) {
  for (const double clip : {0.0, 1.0})
    for (const char* segments : {"step", "op"}) {
      PlanOptions options;
      options.workers = 1;
      options.devices = {DeviceKind::cuda};
      options.segments = segments;
      job.recipe.optimizer.clip_norm = clip;
      recorder = {};
      EXPECT_THAT(run(options, std::make_shared<Images>(),
                      [&](Executor& executor) { overflow_on_the_way_back(executor); }),
                  AllOf(HasSubstr("step 1: the gradient is no longer a number"),
                        HasSubstr("the backward of dense 'second'")));
      EXPECT_TRUE(unpoisoned());
    }
}

TEST_F(NotFiniteRun, ParametersThatCameThatWayAreNamed) {
  const std::string said = run(plans()[1], std::make_shared<Images>(), [&](Executor& executor) {
    for (std::uint32_t i = 0; i < job.graph.parameters().size(); ++i)
      if (job.graph.parameters()[i].name == "third.bias")
        executor.set_parameter(ParameterId{i}, std::vector<float>(3, INFINITY));
  });
  EXPECT_THAT(said, HasSubstr("the parameters 'third.bias'"));
}

TEST_F(NotFiniteRun, AnAccumulatedStepStopsAtItsBadMicroBatch) {
  job.recipe.accumulate = 3;
  const std::string said = run(plans()[1], std::make_shared<Images>(9, INFINITY), [](Executor&) {});
  EXPECT_THAT(said, AllOf(HasSubstr("step 1: "), HasSubstr("first in the samples")));
  EXPECT_TRUE(recorder.steps.empty());
  EXPECT_TRUE(unpoisoned());
}

}  // namespace
}  // namespace regatta
