// Each sample normalised by its own mean and variance: one block per sample, which reads it again
// for every sum, from caches where it fits. The gradients of weight and bias are sums over samples,
// one thread per element, always in the same order.
#include "backends/cuda/block_sum.cuh"
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

// A sample's elements in memory, and where each one's weight lies: weights are planar.
struct View {
  std::int64_t elements, pixels, channels;  // channels: 1 where not innermost
  __device__ std::int64_t plain(std::int64_t i) const {
    return i % channels * pixels + i / channels;
  }
};

struct Statistics {
  float mean, inverse_deviation;
};

template <class T>
__device__ Statistics statistics(const View& view, const T* values, float epsilon) {
  const auto count = static_cast<double>(view.elements);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < view.elements; i += blockDim.x) sum += to_float(values[i]);
  const auto mean =
      static_cast<float>(block_sum<threads_per_block>(static_cast<double>(sum)) / count);
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < view.elements; i += blockDim.x) {
    const float distance = to_float(values[i]) - mean;
    squares += distance * distance;
  }
  const double variance = block_sum<threads_per_block>(static_cast<double>(squares)) / count;
  return {mean, static_cast<float>(1 / sqrt(variance + static_cast<double>(epsilon)))};
}

template <class In, class Out>
__global__ void __launch_bounds__(threads_per_block)
    normalise(View view, const In* input, const float* weight, const float* bias, float epsilon,
              Out* output) {
  const std::int64_t first = std::int64_t{blockIdx.x} * view.elements;
  const Statistics by = statistics(view, input + first, epsilon);
  for (std::int64_t i = threadIdx.x; i < view.elements; i += blockDim.x) {
    const float normalised = (to_float(input[first + i]) - by.mean) * by.inverse_deviation;
    const std::int64_t at = view.plain(i);
    output[first + i] = from_float<Out>(normalised * weight[at] + bias[at]);
  }
}

// `seen` keeps each sample's statistics for the sums over samples. A null target wants none.
template <class In, class Out>
__global__ void __launch_bounds__(threads_per_block)
    input_gradient(View view, const In* input, const Out* gradient, const float* weight,
                   float epsilon, Statistics* seen, In* target, bool add) {
  const std::int64_t first = std::int64_t{blockIdx.x} * view.elements;
  const Statistics by = statistics(view, input + first, epsilon);
  if (threadIdx.x == 0) seen[blockIdx.x] = by;
  if (!target) return;
  const auto normalised = [&](std::int64_t i) {
    return (to_float(input[first + i]) - by.mean) * by.inverse_deviation;
  };
  const auto scaled = [&](std::int64_t i) {
    return to_float(gradient[first + i]) * weight[view.plain(i)];
  };
  float sum = 0, product = 0;
  for (std::int64_t i = threadIdx.x; i < view.elements; i += blockDim.x) {
    sum += scaled(i);
    product += scaled(i) * normalised(i);
  }
  const auto count = static_cast<double>(view.elements);
  const auto mean =
      static_cast<float>(block_sum<threads_per_block>(static_cast<double>(sum)) / count);
  const auto mean_product =
      static_cast<float>(block_sum<threads_per_block>(static_cast<double>(product)) / count);
  for (std::int64_t i = threadIdx.x; i < view.elements; i += blockDim.x) {
    const float dx = by.inverse_deviation * (scaled(i) - mean - normalised(i) * mean_product);
    In& to = target[first + i];
    to = from_float<In>(add ? to_float(to) + dx : dx);
  }
}

template <class In, class Out>
struct ParameterGradients {
  View view;
  std::int64_t n;
  const In* input;
  const Out* gradient;
  const Statistics* seen;
  float *weight, *bias;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    double weights = 0, biases = 0;
    for (std::int64_t sample = 0; sample < n; ++sample) {
      const std::int64_t at = sample * view.elements + i;
      const float dy = to_float(gradient[at]);
      const Statistics by = seen[sample];
      weights += static_cast<double>(dy * (to_float(input[at]) - by.mean) * by.inverse_deviation);
      biases += static_cast<double>(dy);
    }
    const std::int64_t to = view.plain(i);
    weight[to] = (add ? weight[to] : 0.0f) + static_cast<float>(weights);
    bias[to] = (add ? bias[to] : 0.0f) + static_cast<float>(biases);
  }
};

class LayerNorm : public Kernel {
 public:
  explicit LayerNorm(const Site& site)
      : tools_(site.tools),
        n_(site.n),
        epsilon_(static_cast<float>(site.node.attributes.real("epsilon", 1e-5))),
        input_(site.input_dtype(0)),
        output_(site.dtype()) {
    const std::int64_t elements = site.node.shape.elements();
    const std::int64_t channels = site.layout() == Layout::nhwc ? site.node.shape.channels() : 1;
    view_ = {elements, elements / channels, channels};
  }

  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(n_) * sizeof(Statistics);
  }

  void run(Work work, const Operands& o) override {
    with_types(input_, output_, [&]<class In, class Out>() {
      const auto* input = reinterpret_cast<const In*>(o.inputs[0]);
      const auto blocks = static_cast<unsigned>(n_);
      if (work == Work::forward) {
        normalise<In, Out><<<blocks, threads_per_block, 0, tools_.stream>>>(
            view_, input, o.parameters[0], o.parameters[1], epsilon_,
            reinterpret_cast<Out*>(o.output));
        return;
      }
      const auto* gradient = reinterpret_cast<const Out*>(o.output_gradient);
      auto* seen = reinterpret_cast<Statistics*>(tools_.workspace);
      const bool wanted = o.gradient_modes[0] != GradientMode::none;
      input_gradient<In, Out><<<blocks, threads_per_block, 0, tools_.stream>>>(
          view_, input, gradient, o.parameters[0], epsilon_, seen,
          wanted ? reinterpret_cast<In*>(o.input_gradients[0]) : nullptr,
          o.gradient_modes[0] == GradientMode::add);
      for_each_index(
          tools_, view_.elements,
          ParameterGradients<In, Out>{view_, n_, input, gradient, seen, o.parameter_gradients[0],
                                      o.parameter_gradients[1], o.add_parameter_gradients});
    });
  }

 private:
  const Tools& tools_;
  std::int64_t n_;
  float epsilon_;
  Dtype input_, output_;
  View view_{};
};

}  // namespace

std::unique_ptr<Kernel> make_layer_norm(const Site& site) {
  return std::make_unique<LayerNorm>(site);
}

}  // namespace regatta::cuda
