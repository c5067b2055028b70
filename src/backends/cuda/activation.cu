// Functions of one element, where no operator before could take them in. Which one it is, a kernel
// learns when it runs: memory is what these cost, and one kernel serves all.
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

enum class Function { relu, relu6, leaky_relu, sigmoid, tanh, gelu, gelu_by_tanh };

Function function_of(const Node& node) {
  struct Row {
    std::string_view op;
    Function function;
  };
  static constexpr Row rows[] = {{"relu", Function::relu},
                                 {"relu6", Function::relu6},
                                 {"leaky_relu", Function::leaky_relu},
                                 {"sigmoid", Function::sigmoid},
                                 {"tanh", Function::tanh}};
  for (const Row& row : rows)
    if (row.op == node.op->name) return row.function;
  return node.attributes.flag("tanh") ? Function::gelu_by_tanh : Function::gelu;
}

struct Activation {
  Function function;
  float leak;  // leaky_relu's slope below zero

  // The slope is known from the output alone but for these.
  __host__ __device__ bool reads_input() const {
    return function == Function::gelu || function == Function::gelu_by_tanh;
  }

  // A NaN is neither below nor above anything, so it passes.
  __device__ float value(float x) const {
    switch (function) {
      case Function::relu:
        return rectified(x);
      case Function::relu6:
        return x > 6 ? 6.0f : rectified(x);
      case Function::leaky_relu:
        return x > 0 ? x : leak * x;
      case Function::sigmoid:
        return 1 / (1 + expf(-x));
      case Function::tanh:
        return tanhf(x);
      case Function::gelu:
        return 0.5f * x * (1 + erff(x * root_half));
      case Function::gelu_by_tanh:
        return 0.5f * x * (1 + tanhf(root_two_over_pi * (x + cubic * x * x * x)));
    }
    return x;
  }

  // `seen`: the input where reads_input(), else the output.
  __device__ float slope(float seen) const {
    switch (function) {
      case Function::relu:
        return seen > 0 ? 1.0f : 0.0f;
      case Function::relu6:
        return seen <= 0 || seen >= 6 ? 0.0f : 1.0f;
      case Function::leaky_relu:
        return seen > 0 ? 1.0f : leak;
      case Function::sigmoid:
        return seen * (1 - seen);
      case Function::tanh:
        return 1 - seen * seen;
      case Function::gelu:
        return 0.5f * (1 + erff(seen * root_half)) +
               seen * 0.5f * root_two_over_pi * expf(-0.5f * seen * seen);
      case Function::gelu_by_tanh: {
        const float share = tanhf(root_two_over_pi * (seen + cubic * seen * seen * seen));
        const float inner = root_two_over_pi * (1 + 3 * cubic * seen * seen);
        return 0.5f * (1 + share) + 0.5f * seen * (1 - share * share) * inner;
      }
    }
    return 1;
  }

  static constexpr float root_half = 0.70710678118654752f;
  static constexpr float root_two_over_pi = 0.79788456080286536f;
  static constexpr float cubic = 0.044715f;
};

template <class In, class Out, int V>
struct Apply {
  Activation by;
  const In* input;
  Out* output;
  __device__ void operator()(std::int64_t i) const {
    const auto x = load<V>(input + i * V);
    Pack<Out, V> y;
    for (int v = 0; v < V; ++v) y.values[v] = from_float<Out>(by.value(to_float(x.values[v])));
    store(output + i * V, y);
  }
};

template <class In, class Out, int V>
struct ApplyGradient {
  Activation by;
  const In* input;
  const Out *output, *gradient;
  In* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    float seen[V];
    if (by.reads_input()) {
      const auto x = load<V>(input + i * V);
      for (int v = 0; v < V; ++v) seen[v] = to_float(x.values[v]);
    } else {
      const auto y = load<V>(output + i * V);
      for (int v = 0; v < V; ++v) seen[v] = to_float(y.values[v]);
    }
    const auto dy = load<V>(gradient + i * V);
    Pack<In, V> dx{};
    if (add) dx = load<V>(target + i * V);
    for (int v = 0; v < V; ++v) {
      // A slope of zero stops even what is infinite.
      const float slope = by.slope(seen[v]);
      const float passed = slope == 0 ? 0.0f : slope * to_float(dy.values[v]);
      dx.values[v] = from_float<In>(add ? to_float(dx.values[v]) + passed : passed);
    }
    store(target + i * V, dx);
  }
};

class ActivationKernel : public Kernel {
 public:
  explicit ActivationKernel(const Site& site)
      : tools_(site.tools),
        count_(site.values()),
        by_{function_of(site.node), static_cast<float>(site.node.attributes.real("slope", 0.01))},
        input_(site.input_dtype(0)),
        output_(site.dtype()) {}

  void run(Work work, const Operands& o) override {
    with_types(input_, output_, [&]<class In, class Out>() {
      constexpr int V = lanes<In>;
      if (count_ % V == 0)
        launch<In, Out, V>(work, o);
      else
        launch<In, Out, 1>(work, o);
    });
  }

 private:
  template <class In, class Out, int V>
  void launch(Work work, const Operands& o) const {
    const auto* input = reinterpret_cast<const In*>(o.inputs[0]);
    if (work == Work::forward) {
      for_each_index(tools_, count_ / V,
                     Apply<In, Out, V>{by_, input, reinterpret_cast<Out*>(o.output)});
    } else if (o.gradient_modes[0] != GradientMode::none) {
      for_each_index(tools_, count_ / V,
                     ApplyGradient<In, Out, V>{by_, input, reinterpret_cast<const Out*>(o.output),
                                               reinterpret_cast<const Out*>(o.output_gradient),
                                               reinterpret_cast<In*>(o.input_gradients[0]),
                                               o.gradient_modes[0] == GradientMode::add});
    }
  }

  const Tools& tools_;
  std::int64_t count_;
  Activation by_;
  Dtype input_, output_;
};

}  // namespace

std::unique_ptr<Kernel> make_activation(const Site& site) {
  return std::make_unique<ActivationKernel>(site);
}

}  // namespace regatta::cuda
