// relu and add, and the loops other kernels borrow from them.
#include "backends/cpu/elementwise.h"

#include <algorithm>

#include "backends/cpu/kernel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {

// A NaN is neither above nor below zero: relus let it through, so that the loss shows it.

REGATTA_CLONES void add_to(float* target, const float* source, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
}

REGATTA_CLONES void mask_by_sign(const float* output, const float* gradient, float* target,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] = output[i] <= 0 ? 0 : gradient[i];
}

namespace {

REGATTA_CLONES void add_masked(const float* output, const float* gradient, float* target,
                               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] += output[i] <= 0 ? 0 : gradient[i];
}

REGATTA_CLONES void rectify(const float* input, float* output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) output[i] = input[i] < 0 ? 0 : input[i];
}

REGATTA_CLONES void sum_of(const float* a, const float* b, float* output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) output[i] = a[i] + b[i];
}

class Elementwise : public Kernel {
 public:
  explicit Elementwise(const Site& site)
      : count_(static_cast<std::size_t>(site.elements() * site.n)) {}

 protected:
  std::size_t count_;
};

class Relu : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void run(Work work, const Operands& o, std::byte*) override {
    if (work == Work::forward)
      rectify(o.inputs[0], o.output, count_);
    else if (o.gradient_modes[0] == GradientMode::write)
      mask_by_sign(o.output, o.output_gradient, o.input_gradients[0], count_);
    else if (o.gradient_modes[0] == GradientMode::add)
      add_masked(o.output, o.output_gradient, o.input_gradients[0], count_);
  }
};

class Add : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void run(Work work, const Operands& o, std::byte*) override {
    if (work == Work::forward) {
      sum_of(o.inputs[0], o.inputs[1], o.output, count_);
      return;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (o.gradient_modes[i] == GradientMode::write)
        std::copy_n(o.output_gradient, count_, o.input_gradients[i]);
      else if (o.gradient_modes[i] == GradientMode::add)
        add_to(o.input_gradients[i], o.output_gradient, count_);
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_relu(const Site& site) { return std::make_unique<Relu>(site); }
std::unique_ptr<Kernel> make_add(const Site& site) { return std::make_unique<Add>(site); }

}  // namespace regatta::cpu
