// relu and add, and the loops other kernels borrow from them.
#include "backends/cpu/elementwise.h"

#include <algorithm>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {

// A NaN is neither above nor below zero: relus let it through, so that the loss shows it.

namespace {

template <class T>
REGATTA_INLINE void add_values(T* target, const T* source, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    target[i] = from_float<T>(to_float(target[i]) + to_float(source[i]));
}

template <class T>
REGATTA_INLINE void mask_values(const T* output, const T* gradient, T* target, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] = to_float(output[i]) <= 0 ? T{} : gradient[i];
}

template <class T>
REGATTA_INLINE void add_masked_values(const T* output, const T* gradient, T* target,
                                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    target[i] =
        from_float<T>(to_float(target[i]) + (to_float(output[i]) <= 0 ? 0 : to_float(gradient[i])));
}

template <class T>
REGATTA_INLINE void rectify_values(const T* input, T* output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) output[i] = to_float(input[i]) < 0 ? T{} : input[i];
}

template <class T>
REGATTA_INLINE void sum_values(const T* a, const T* b, T* output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    output[i] = from_float<T>(to_float(a[i]) + to_float(b[i]));
}

// Clones cannot be templates, so each loop has one for each type.
REGATTA_CLONES void add_range(float* target, const float* source, std::size_t count) {
  add_values(target, source, count);
}
REGATTA_CLONES void add_range(Bfloat16* target, const Bfloat16* source, std::size_t count) {
  add_values(target, source, count);
}
REGATTA_CLONES void mask_range(const float* output, const float* gradient, float* target,
                               std::size_t count) {
  mask_values(output, gradient, target, count);
}
REGATTA_CLONES void mask_range(const Bfloat16* output, const Bfloat16* gradient, Bfloat16* target,
                               std::size_t count) {
  mask_values(output, gradient, target, count);
}
REGATTA_CLONES void add_masked(const float* output, const float* gradient, float* target,
                               std::size_t count) {
  add_masked_values(output, gradient, target, count);
}
REGATTA_CLONES void add_masked(const Bfloat16* output, const Bfloat16* gradient, Bfloat16* target,
                               std::size_t count) {
  add_masked_values(output, gradient, target, count);
}
REGATTA_CLONES void rectify_range(const float* input, float* output, std::size_t count) {
  rectify_values(input, output, count);
}
REGATTA_CLONES void rectify_range(const Bfloat16* input, Bfloat16* output, std::size_t count) {
  rectify_values(input, output, count);
}
REGATTA_CLONES void sum_of(const float* a, const float* b, float* output, std::size_t count) {
  sum_values(a, b, output, count);
}
REGATTA_CLONES void sum_of(const Bfloat16* a, const Bfloat16* b, Bfloat16* output,
                           std::size_t count) {
  sum_values(a, b, output, count);
}

// body(first, count) for the team's ranges of `count` values.
template <class Body>
void over_values(std::size_t count, const Body& body) {
  parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
    body(begin, static_cast<std::size_t>(end - begin));
  });
}

template <class T>
void add_all(T* target, const T* source, std::size_t count) {
  over_values(count, [&](std::int64_t first, std::size_t length) {
    add_range(target + first, source + first, length);
  });
}

template <class T>
void mask_all(const T* output, const T* gradient, T* target, std::size_t count) {
  over_values(count, [&](std::int64_t first, std::size_t length) {
    mask_range(output + first, gradient + first, target + first, length);
  });
}

template <class T>
void rectify_all(T* values, std::size_t count) {
  over_values(count, [&](std::int64_t first, std::size_t length) {
    rectify_range(values + first, values + first, length);
  });
}

}  // namespace

void add_to(float* target, const float* source, std::size_t count) {
  add_all(target, source, count);
}
void add_to(Bfloat16* target, const Bfloat16* source, std::size_t count) {
  add_all(target, source, count);
}
void rectify(float* values, std::size_t count) { rectify_all(values, count); }
void rectify(Bfloat16* values, std::size_t count) { rectify_all(values, count); }
void mask_by_sign(const float* output, const float* gradient, float* target, std::size_t count) {
  mask_all(output, gradient, target, count);
}
void mask_by_sign(const Bfloat16* output, const Bfloat16* gradient, Bfloat16* target,
                  std::size_t count) {
  mask_all(output, gradient, target, count);
}

namespace {

class Elementwise : public Kernel {
 public:
  explicit Elementwise(const Site& site)
      : count_(static_cast<std::size_t>(site.elements() * site.n)) {}

 protected:
  std::size_t count_;
};

template <class T>
class Relu : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void run(Work work, const Operands& o, std::byte*) override {
    const T* output = values_of<T>(o.output);
    const T* gradient = values_of<T>(o.output_gradient);
    T* input_gradient = values_of<T>(o.input_gradients[0]);
    if (work == Work::forward)
      over_values(count_, [&](std::int64_t first, std::size_t length) {
        rectify_range(values_of<T>(o.inputs[0]) + first, values_of<T>(o.output) + first, length);
      });
    else if (o.gradient_modes[0] == GradientMode::write)
      mask_by_sign(output, gradient, input_gradient, count_);
    else if (o.gradient_modes[0] == GradientMode::add)
      over_values(count_, [&](std::int64_t first, std::size_t length) {
        add_masked(output + first, gradient + first, input_gradient + first, length);
      });
  }
};

template <class T>
class Add : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void run(Work work, const Operands& o, std::byte*) override {
    if (work == Work::forward) {
      over_values(count_, [&](std::int64_t first, std::size_t length) {
        sum_of(values_of<T>(o.inputs[0]) + first, values_of<T>(o.inputs[1]) + first,
               values_of<T>(o.output) + first, length);
      });
      return;
    }
    const T* gradient = values_of<T>(o.output_gradient);
    for (std::size_t i = 0; i < 2; ++i) {
      T* input_gradient = values_of<T>(o.input_gradients[i]);
      if (o.gradient_modes[i] == GradientMode::write)
        over_values(count_, [&](std::int64_t first, std::size_t length) {
          std::copy_n(gradient + first, length, input_gradient + first);
        });
      else if (o.gradient_modes[i] == GradientMode::add)
        add_to(input_gradient, gradient, count_);
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_relu(const Site& site) {
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<Relu<T>>(site);
  });
}
std::unique_ptr<Kernel> make_add(const Site& site) {
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<Add<T>>(site);
  });
}

}  // namespace regatta::cpu
