// Softmax and cross-entropy, a warp per sample: its loss and whether the guess was right.
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

constexpr int warp = 32;
constexpr unsigned all_lanes = 0xffffffffu;

struct Largest {
  float value;
  int index;
};

// The first of equal values wins, as in the reference.
__device__ Largest largest_of(Largest a, Largest b) {
  if (b.value > a.value || (b.value == a.value && b.index < a.index)) return b;
  return a;
}

struct Sample {
  Largest best;
  float sum;  // of exponentials relative to the largest
};

__device__ Sample softmax(const float* logits, int classes, int lane) {
  Largest best{-INFINITY, classes};
  for (int c = lane; c < classes; c += warp) best = largest_of(best, {logits[c], c});
  for (int step = warp / 2; step > 0; step /= 2)
    best = largest_of(best, {__shfl_xor_sync(all_lanes, best.value, step),
                             __shfl_xor_sync(all_lanes, best.index, step)});
  float sum = 0;
  for (int c = lane; c < classes; c += warp) sum += expf(logits[c] - best.value);
  for (int step = warp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(all_lanes, sum, step);
  return {best, sum};
}

struct Loss {
  const float* logits;
  const Target* targets;
  float* output;
  int* mark;  // null in evaluation
  int classes;
  float smoothing;
  __device__ void operator()(std::int64_t i) const {
    const int lane = static_cast<int>(i % warp);
    const std::int64_t sample = i / warp;
    const float* row = logits + sample * classes;
    const Sample seen = softmax(row, classes, lane);
    float spread = 0;  // how far all logits are below the largest
    if (smoothing > 0) {
      for (int c = lane; c < classes; c += warp) spread += seen.best.value - row[c];
      for (int step = warp / 2; step > 0; step /= 2)
        spread += __shfl_xor_sync(all_lanes, spread, step);
    }
    if (lane != 0) return;
    const Target target = targets[sample];
    const float other = (1 - smoothing) * target.other_share;
    float expected = ((1 - smoothing) - other) * (seen.best.value - row[target.label]);
    if (other > 0) expected += other * (seen.best.value - row[target.other]);
    expected += smoothing / static_cast<float>(classes) * spread;
    const float loss = logf(seen.sum) + expected;
    output[2 * sample] = loss;
    if (mark && !isfinite(loss)) *mark = 1;  // whoever comes first: they all say the same
    const std::int32_t label = target.other_share < 0.5f ? target.label : target.other;
    output[2 * sample + 1] = seen.best.index == label ? 1.0f : 0.0f;
  }
};

struct LossGradient {
  const float* logits;
  const Target* targets;
  float* gradients;
  int classes;
  float smoothing, scale;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const int lane = static_cast<int>(i % warp);
    const std::int64_t sample = i / warp;
    const float* row = logits + sample * classes;
    const Sample seen = softmax(row, classes, lane);
    const Target target = targets[sample];
    const float other = (1 - smoothing) * target.other_share;
    const float own = (1 - smoothing) - other;
    for (int c = lane; c < classes; c += warp) {
      const float probability = expf(row[c] - seen.best.value) / seen.sum;
      float share = smoothing / static_cast<float>(classes);
      if (c == target.label) share += own;
      if (c == target.other) share += other;
      const float gradient = (probability - share) * scale;
      float& to = gradients[sample * classes + c];
      to = add ? to + gradient : gradient;
    }
  }
};

class CrossEntropy : public Kernel {
 public:
  explicit CrossEntropy(const Site& site)
      : tools_(site.tools),
        n_(site.n),
        classes_(static_cast<int>(site.input(0).shape.elements())),
        smoothing_(static_cast<float>(site.node.attributes.real("smoothing", 0))) {}

  // A block is whole warps and the count is too, so no warp ever runs with lanes missing.
  void run(Work work, const Operands& o) override {
    // Smoothing is for training: a test says how good the answers are.
    const float smoothing = o.pass == Pass::train ? smoothing_ : 0;
    if (work == Work::forward)
      for_each_index(tools_, n_ * warp,
                     Loss{o.inputs[0], o.targets, o.output,
                          o.pass == Pass::train ? tools_.mark : nullptr, classes_, smoothing});
    else if (o.gradient_modes[0] != GradientMode::none)
      for_each_index(tools_, n_ * warp,
                     LossGradient{o.inputs[0], o.targets, o.input_gradients[0], classes_, smoothing,
                                  o.loss_scale, o.gradient_modes[0] == GradientMode::add});
  }

 private:
  const Tools& tools_;
  std::int64_t n_;
  int classes_;
  float smoothing_;
};

}  // namespace

std::unique_ptr<Kernel> make_cross_entropy(const Site& site) {
  return std::make_unique<CrossEntropy>(site);
}

}  // namespace regatta::cuda
