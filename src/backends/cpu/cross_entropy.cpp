// Softmax and cross-entropy: per sample its loss and whether the guess was right.
#include <cmath>

#include "backends/cpu/kernel.h"

namespace regatta::cpu {
namespace {

class CrossEntropy : public Kernel {
 public:
  explicit CrossEntropy(const Site& site) : n_(site.n), classes_(site.input(0).shape.elements()) {}

  void run(Work work, const Operands& o, std::byte*) override {
    for (std::int64_t i = 0; i < n_; ++i) {
      const float* logits = o.inputs[0] + i * classes_;
      const std::int64_t label = o.labels[i];
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < classes_; ++c)
        if (logits[c] > logits[best]) best = c;
      const float top = logits[best];
      double sum = 0;
      for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(double(logits[c] - top));
      if (work == Work::forward) {
        o.output[2 * i] = static_cast<float>(std::log(sum) + double(top - logits[label]));
        o.output[2 * i + 1] = best == label ? 1.0f : 0.0f;
        continue;
      }
      float* gradient = o.input_gradients[0] + i * classes_;
      for (std::int64_t c = 0; c < classes_; ++c) {
        const double probability = std::exp(double(logits[c] - top)) / sum;
        const double value = (probability - (c == label ? 1.0 : 0.0)) * double(o.loss_scale);
        gradient[c] = static_cast<float>(value);
      }
    }
  }

 private:
  std::int64_t n_, classes_;
};

}  // namespace

std::unique_ptr<Kernel> make_cross_entropy(const Site& site) {
  return std::make_unique<CrossEntropy>(site);
}

}  // namespace regatta::cpu
