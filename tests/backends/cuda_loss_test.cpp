// Blended and smoothed targets on the GPU, and the mark of a loss that is not a number.
#ifdef REGATTA_HAVE_CUDA

#include <cmath>
#include <limits>

#include "backends/cuda_memory.h"
#include "graph/op.h"
#include "ops/ops.h"

namespace regatta {
namespace {

constexpr std::size_t classes = 70, samples = 5;  // more classes than a warp has lanes

Graph loss_alone(double smoothing) {
  GraphBuilder builder("loss");
  const NodeId input = builder.add(
      input_op, "input", {},
      Attributes{{"shape", std::vector<std::int64_t>{static_cast<std::int64_t>(classes)}}});
  const NodeId logits = builder.add(
      dense_op, "logits", {input},
      Attributes{{"features", static_cast<std::int64_t>(classes)}, {"bias", std::int64_t{0}}});
  builder.add(cross_entropy_op, "loss", {logits}, Attributes{{"smoothing", smoothing}});
  return std::move(builder).finish();
}

std::vector<float> some_logits() {
  std::vector<float> logits(samples * classes);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = 3 * std::sin(static_cast<float>(i * i % 97));
  return logits;
}

const std::vector<Target> targets{{3, 3, 0}, {69, 1, 0.25f}, {5, 40, 0.75f}, {0, 0, 0}, {9, 8, 1}};

// Loss and gradient of the reference, in double.
struct Expected {
  std::vector<double> output, gradient;
};

Expected reference(const Graph& graph, Pass pass) {
  const std::vector<float> logits = some_logits();
  const std::vector<double> input(logits.begin(), logits.end());
  Expected found{std::vector<double>(2 * samples), std::vector<double>(logits.size())};
  ReferenceCall<double> call;
  call.node = &graph.node(graph.loss());
  call.n = static_cast<std::int64_t>(samples);
  call.training = pass == Pass::train;
  call.shapes = input_shapes(graph, *call.node);
  call.inputs = {input.data()};
  call.output = found.output.data();
  call.targets = targets.data();
  call.node->op->forward_double(call);
  const std::vector<double> ones(2 * samples, 1.0 / samples);
  call.output_gradient = ones.data();
  call.input_gradients = {found.gradient.data()};
  call.node->op->backward_double(call);
  return found;
}

class LossOnDevice {
 public:
  LossOnDevice(const Graph& graph, const std::vector<float>& logits)
      : graph_(graph),
        backend_(graph, {}),
        worker_(backend_, nullptr),
        logits_(logits),
        output_(std::vector<float>(2 * samples, -1)),
        gradient_(std::vector<float>(samples * classes, -1)),
        targets_(targets) {}

  void run(Work work, Pass pass) {
    Operands o;
    o.n = static_cast<std::int64_t>(samples);
    o.pass = pass;
    o.inputs[0] = logits_.data();
    o.output = output_.data();
    o.input_gradients[0] = gradient_.data();
    o.gradient_modes[0] = GradientMode::write;
    o.targets = targets_.data();
    o.loss_scale = 1.0f / samples;
    worker_.run({graph_.loss(), work}, o);
  }
  std::vector<float> output() const { return output_.read(); }
  std::vector<float> gradient() const { return gradient_.read(); }
  int mark() const {
    int found = -1;
    cuda::check(cudaMemcpy(&found, worker_.mark(), sizeof found, cudaMemcpyDeviceToHost));
    return found;
  }
  void forget_mark() { worker_.forget_mark(); }

 private:
  const Graph& graph_;
  cuda::Backend backend_;
  cuda::Worker worker_;
  OnDevice logits_, output_, gradient_;
  OnDeviceOf<Target> targets_;
};

TEST(CudaLoss, OfBlendedAndSmoothedTargetsIsTheReferences) {
  SKIP_WITHOUT_GPU();
  for (const double smoothing : {0.0, 0.1})
    for (const Pass pass : {Pass::train, Pass::evaluate}) {
      const Graph graph = loss_alone(smoothing);
      const Expected expected = reference(graph, pass);
      LossOnDevice loss(graph, some_logits());
      loss.run(Work::forward, pass);
      const std::vector<float> output = loss.output();
      for (std::size_t i = 0; i < output.size(); ++i)
        ASSERT_NEAR(output[i], expected.output[i], 1e-5) << "smoothing " << smoothing;
      EXPECT_EQ(loss.mark(), 0);
      if (pass == Pass::evaluate) continue;
      loss.run(Work::backward, pass);
      const std::vector<float> gradient = loss.gradient();
      for (std::size_t i = 0; i < gradient.size(); ++i)
        ASSERT_NEAR(gradient[i], expected.gradient[i], 1e-6) << "smoothing " << smoothing;
    }
}

TEST(CudaLoss, ThatIsNoNumberLeavesAMarkInTrainingAlone) {
  SKIP_WITHOUT_GPU();
  const Graph graph = loss_alone(0);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = some_logits();
    logits[2 * classes + 33] = bad;
    LossOnDevice loss(graph, logits);
    loss.run(Work::forward, Pass::evaluate);
    EXPECT_EQ(loss.mark(), 0);
    loss.run(Work::forward, Pass::train);
    EXPECT_EQ(loss.mark(), 1);
    loss.forget_mark();
    EXPECT_EQ(loss.mark(), 0);
  }
}

}  // namespace
}  // namespace regatta

#endif  // REGATTA_HAVE_CUDA
