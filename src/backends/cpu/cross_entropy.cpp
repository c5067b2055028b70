// Softmax and cross-entropy: per sample its loss and whether the guess was right.
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

namespace regatta::cpu {
namespace {

class CrossEntropy : public Kernel {
 public:
  explicit CrossEntropy(const Site& site)
      : n_(site.n),
        classes_(site.input(0).shape.elements()),
        smoothing_(site.node.attributes.real("smoothing", 0)) {}

  void run(Work work, const Operands& o, std::byte*) override {
    // An exponential is worth some ten plain elements.
    parallel_for(n_, 10 * classes_,
                 [&](std::int64_t begin, std::int64_t end) { run_samples(work, o, begin, end); });
  }

 private:
  void run_samples(Work work, const Operands& o, std::int64_t begin, std::int64_t end) const {
    // Smoothing is for training: a test says how good the answers are.
    const double smoothing = o.pass == Pass::train ? smoothing_ : 0;
    const double everywhere = smoothing / static_cast<double>(classes_);
    for (std::int64_t i = begin; i < end; ++i) {
      const float* logits = o.inputs[0] + i * classes_;
      const Target& target = o.targets[i];
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < classes_; ++c)
        if (logits[c] > logits[best]) best = c;
      const float top = logits[best];
      double sum = 0;
      for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(double(logits[c] - top));
      const double other = (1 - smoothing) * double(target.other_share);
      const double own = (1 - smoothing) - other;
      if (work == Work::forward) {
        // Relative to the largest logit, as the sum is.
        double expected = own * double(top - logits[target.label]);
        if (other > 0) expected += other * double(top - logits[target.other]);
        if (smoothing > 0)
          for (std::int64_t c = 0; c < classes_; ++c)
            expected += everywhere * double(top - logits[c]);
        o.output[2 * i] = static_cast<float>(std::log(sum) + expected);
        o.output[2 * i + 1] = best == target.expected() ? 1.0f : 0.0f;
        continue;
      }
      float* gradient = o.input_gradients[0] + i * classes_;
      for (std::int64_t c = 0; c < classes_; ++c) {
        const double probability = std::exp(double(logits[c] - top)) / sum;
        double share = everywhere;
        if (c == target.label) share += own;
        if (c == target.other) share += other;
        gradient[c] = static_cast<float>((probability - share) * double(o.loss_scale));
      }
    }
  }

  std::int64_t n_, classes_;
  double smoothing_;
};

}  // namespace

std::unique_ptr<Kernel> make_cross_entropy(const Site& site) {
  return std::make_unique<CrossEntropy>(site);
}

}  // namespace regatta::cpu
