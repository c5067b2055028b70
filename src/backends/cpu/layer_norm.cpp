// Layer norm of whole samples. Weight and bias are brought into the values' layout first, so that
// every loop runs straight over memory; channels that only pad get zero weights.
#include <algorithm>
#include <cmath>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/placement.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

struct Sums {
  double first = 0, second = 0;
};

// Sums are kept in many accumulators so that the loop is vectorised, and in double.
constexpr int width = 16;

// Sums of x and of its squares. What only pads is zero and adds nothing.
REGATTA_CLONES Sums sums_of(const float* x, std::int64_t count) {
  double sums[width] = {}, squares[width] = {};
  std::int64_t i = 0;
  for (; i + width <= count; i += width)
    for (int l = 0; l < width; ++l) {
      const double value = x[i + l];
      sums[l] += value;
      squares[l] += value * value;
    }
  Sums total;
  for (int l = 0; l < width; ++l) {
    total.first += sums[l];
    total.second += squares[l];
  }
  for (; i < count; ++i) {
    total.first += x[i];
    total.second += double(x[i]) * double(x[i]);
  }
  return total;
}

REGATTA_CLONES void normalise(const float* x, const float* weight, const float* bias, float* y,
                              std::int64_t count, float mean, float inverse) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
}

// Adds to the gradients of weight and bias, and gives the sums of the scaled gradient and of it
// times the normalised value.
REGATTA_CLONES Sums gradient_sums(const float* x, const float* gradient, const float* weight,
                                  float* weight_sums, float* bias_sums, std::int64_t count,
                                  float mean, float inverse) {
  double sums[width] = {}, products[width] = {};
  std::int64_t i = 0;
  for (; i + width <= count; i += width)
    for (int l = 0; l < width; ++l) {
      const float normalised = (x[i + l] - mean) * inverse;
      const float scaled = gradient[i + l] * weight[i + l];
      weight_sums[i + l] += gradient[i + l] * normalised;
      bias_sums[i + l] += gradient[i + l];
      sums[l] += scaled;
      products[l] += scaled * normalised;
    }
  Sums total;
  for (int l = 0; l < width; ++l) {
    total.first += sums[l];
    total.second += products[l];
  }
  for (; i < count; ++i) {
    const float normalised = (x[i] - mean) * inverse;
    const float scaled = gradient[i] * weight[i];
    weight_sums[i] += gradient[i] * normalised;
    bias_sums[i] += gradient[i];
    total.first += scaled;
    total.second += scaled * normalised;
  }
  return total;
}

REGATTA_CLONES void input_gradient(const float* x, const float* gradient, const float* weight,
                                   float* target, std::int64_t count, float mean, float inverse,
                                   float mean_gradient, float mean_product, bool add) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float normalised = (x[i] - mean) * inverse;
    const float value =
        inverse * (gradient[i] * weight[i] - mean_gradient - normalised * mean_product);
    target[i] = add ? target[i] + value : value;
  }
}

class LayerNorm : public Kernel {
 public:
  explicit LayerNorm(const Site& site)
      : n_(site.n),
        place_(site.node.shape, site.layout()),
        epsilon_(site.node.attributes.real("epsilon", 1e-5)),
        parts_(parts_of(n_, place_.size())) {}

  // Weight and bias, and each part's sums of their gradients.
  std::size_t scratch_bytes() const override {
    return (2 + 2 * static_cast<std::size_t>(parts_)) * static_cast<std::size_t>(place_.size()) *
           sizeof(float);
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    const std::int64_t size = place_.size();
    auto* weight = reinterpret_cast<float*>(scratch);
    float *bias = weight + size, *sums = bias + size;
    from_planes(place_, 1, o.parameters[0], weight, GradientMode::write);
    if (work == Work::forward) {
      from_planes(place_, 1, o.parameters[1], bias, GradientMode::write);
      parallel_for(n_, size, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Statistics by = statistics(o.inputs[0] + i * size);
          normalise(o.inputs[0] + i * size, weight, bias, o.output + i * size, size, by.mean,
                    by.inverse);
        }
      });
      return;
    }
    parallel_parts(parts_, [&](int part) {
      float* own = sums + 2 * part * size;
      std::fill_n(own, 2 * size, 0.0f);
      for (std::int64_t i = n_ * part / parts_; i < n_ * (part + 1) / parts_; ++i)
        run_back(o, i, weight, own, own + size);
    });
    for (int part = 1; part < parts_; ++part)
      add_to(sums, sums + 2 * part * size, static_cast<std::size_t>(2 * size));
    if (o.gradient_modes[0] != GradientMode::none) clear_padding(place_, n_, o.input_gradients[0]);
    give(sums, o.parameter_gradients[0], o.add_parameter_gradients);
    give(sums + size, o.parameter_gradients[1], o.add_parameter_gradients);
  }

 private:
  struct Statistics {
    float mean, inverse;
  };

  Statistics statistics(const float* x) const {
    const Sums sums = sums_of(x, place_.size());
    const auto count = static_cast<double>(place_.plain_size());
    const double mean = sums.first / count;
    const double variance = std::max(0.0, sums.second / count - mean * mean);
    return {static_cast<float>(mean), static_cast<float>(1.0 / std::sqrt(variance + epsilon_))};
  }

  // One sample; adds to the sums of the weights' gradients.
  void run_back(const Operands& o, std::int64_t i, const float* weight, float* weight_sums,
                float* bias_sums) const {
    const std::int64_t size = place_.size();
    const auto count = static_cast<double>(place_.plain_size());
    const float *x = o.inputs[0] + i * size, *gradient = o.output_gradient + i * size;
    const Statistics by = statistics(x);
    const Sums sums =
        gradient_sums(x, gradient, weight, weight_sums, bias_sums, size, by.mean, by.inverse);
    if (o.gradient_modes[0] == GradientMode::none) return;
    input_gradient(x, gradient, weight, o.input_gradients[0] + i * size, size, by.mean, by.inverse,
                   static_cast<float>(sums.first / count), static_cast<float>(sums.second / count),
                   o.gradient_modes[0] == GradientMode::add);
  }

  // Sums in the values' layout, to a plain parameter's gradient.
  void give(const float* sums, float* target, bool add) const {
    for (std::int64_t c = 0; c < place_.channels; ++c)
      for (std::int64_t p = 0; p < place_.pixels; ++p) {
        const float sum = sums[place_.base(c) + p * place_.block];
        float& slot = target[c * place_.pixels + p];
        slot = add ? slot + sum : sum;
      }
  }

  std::int64_t n_;
  Placement place_;
  double epsilon_;
  int parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_layer_norm(const Site& site) {
  return std::make_unique<LayerNorm>(site);
}

}  // namespace regatta::cpu
