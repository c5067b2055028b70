// relu and add, and the loops other kernels borrow from them.
#include "backends/cpu/elementwise.h"

#include <algorithm>

#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {

// A NaN is neither above nor below zero: relus let it through, so that the loss shows it.

namespace {

REGATTA_CLONES void add_range(float* target, const float* source, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
}

REGATTA_CLONES void mask_range(const float* output, const float* gradient, float* target,
                               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] = output[i] <= 0 ? 0 : gradient[i];
}

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

// body(first, count) for the team's ranges of `count` values.
template <class Body>
void over_values(std::size_t count, const Body& body) {
  parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
    body(begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

void add_to(float* target, const float* source, std::size_t count) {
  over_values(count, [&](std::int64_t first, std::size_t length) {
    add_range(target + first, source + first, length);
  });
}

void mask_by_sign(const float* output, const float* gradient, float* target, std::size_t count) {
  over_values(count, [&](std::int64_t first, std::size_t length) {
    mask_range(output + first, gradient + first, target + first, length);
  });
}

namespace {

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
      over_values(count_, [&](std::int64_t first, std::size_t length) {
        rectify(o.inputs[0] + first, o.output + first, length);
      });
    else if (o.gradient_modes[0] == GradientMode::write)
      mask_by_sign(o.output, o.output_gradient, o.input_gradients[0], count_);
    else if (o.gradient_modes[0] == GradientMode::add)
      over_values(count_, [&](std::int64_t first, std::size_t length) {
        add_masked(o.output + first, o.output_gradient + first, o.input_gradients[0] + first,
                   length);
      });
  }
};

class Add : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void run(Work work, const Operands& o, std::byte*) override {
    if (work == Work::forward) {
      over_values(count_, [&](std::int64_t first, std::size_t length) {
        sum_of(o.inputs[0] + first, o.inputs[1] + first, o.output + first, length);
      });
      return;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (o.gradient_modes[i] == GradientMode::write)
        over_values(count_, [&](std::int64_t first, std::size_t length) {
          std::copy_n(o.output_gradient + first, length, o.input_gradients[i] + first);
        });
      else if (o.gradient_modes[i] == GradientMode::add)
        add_to(o.input_gradients[i], o.output_gradient, count_);
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_relu(const Site& site) { return std::make_unique<Relu>(site); }
std::unique_ptr<Kernel> make_add(const Site& site) { return std::make_unique<Add>(site); }

}  // namespace regatta::cpu
