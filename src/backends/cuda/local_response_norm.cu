// Each value divided by a power of its neighbourhood across channels. Backward first computes what
// each value passes on to its neighbourhood, then gathers it, so that no two threads add to one
// gradient.
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

struct Neighbourhood {
  std::int64_t step;  // from one channel to the next
  int channels, before, after;
  float share, beta, k;

  __device__ int channel_of(std::int64_t i) const { return static_cast<int>(i / step % channels); }
  // What is raised to a power.
  template <class T>
  __device__ float base(const T* values, std::int64_t i) const {
    const int channel = channel_of(i);
    const int first = max(-before, -channel), last = min(after, channels - 1 - channel);
    float sum = 0;
    for (int c = first; c <= last; ++c) {
      const float value = to_float(values[i + c * step]);
      sum += value * value;
    }
    return k + share * sum;
  }
};

template <class T>
struct Normalise {
  Neighbourhood by;
  const T* input;
  T* output;
  __device__ void operator()(std::int64_t i) const {
    output[i] = from_float<T>(to_float(input[i]) * powf(by.base(input, i), -by.beta));
  }
};

template <class T>
struct PassOn {
  Neighbourhood by;
  const T *input, *gradient;
  float* passed;
  __device__ void operator()(std::int64_t i) const {
    passed[i] = to_float(gradient[i]) * to_float(input[i]) * powf(by.base(input, i), -by.beta - 1);
  }
};

template <class T>
struct Gather {
  Neighbourhood by;
  const T *input, *gradient;
  const float* passed;
  T* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    // The channels in whose neighbourhood this one is: mirrored.
    const int channel = by.channel_of(i);
    const int first = max(-by.after, -channel), last = min(by.before, by.channels - 1 - channel);
    float sum = 0;
    for (int c = first; c <= last; ++c) sum += passed[i + c * by.step];
    const float own = to_float(gradient[i]) * powf(by.base(input, i), -by.beta);
    const float dx = own - 2 * by.beta * by.share * to_float(input[i]) * sum;
    target[i] = from_float<T>(add ? to_float(target[i]) + dx : dx);
  }
};

class LocalResponseNorm : public Kernel {
 public:
  explicit LocalResponseNorm(const Site& site)
      : tools_(site.tools), count_(site.values()), dtype_(site.dtype()) {
    const Shape& shape = site.node.shape;
    const Attributes& attributes = site.node.attributes;
    const std::int64_t size = attributes.integer("size", 1);
    by_ = {site.layout() == Layout::nhwc ? 1 : shape.height() * shape.width(),
           static_cast<int>(shape.channels()),
           static_cast<int>(size / 2),
           static_cast<int>((size - 1) / 2),
           static_cast<float>(attributes.real("alpha", 1e-4) / static_cast<double>(size)),
           static_cast<float>(attributes.real("beta", 0.75)),
           static_cast<float>(attributes.real("k", 1))};
  }

  void prepare(Pass pass) override { training_ = training_ || pass == Pass::train; }
  std::size_t workspace_bytes() const override {
    return training_ ? static_cast<std::size_t>(count_) * sizeof(float) : 0;
  }

  void run(Work work, const Operands& o) override {
    with_type(dtype_, [&]<class T>() {
      const auto* input = reinterpret_cast<const T*>(o.inputs[0]);
      if (work == Work::forward) {
        for_each_index(tools_, count_, Normalise<T>{by_, input, reinterpret_cast<T*>(o.output)});
        return;
      }
      if (o.gradient_modes[0] == GradientMode::none) return;
      const auto* gradient = reinterpret_cast<const T*>(o.output_gradient);
      auto* passed = reinterpret_cast<float*>(tools_.workspace);
      for_each_index(tools_, count_, PassOn<T>{by_, input, gradient, passed});
      for_each_index(
          tools_, count_,
          Gather<T>{by_, input, gradient, passed, reinterpret_cast<T*>(o.input_gradients[0]),
                    o.gradient_modes[0] == GradientMode::add});
    });
  }

 private:
  const Tools& tools_;
  std::int64_t count_;
  Dtype dtype_;
  Neighbourhood by_{};
  bool training_ = false;
};

}  // namespace

std::unique_ptr<Kernel> make_local_response_norm(const Site& site) {
  return std::make_unique<LocalResponseNorm>(site);
}

}  // namespace regatta::cuda
