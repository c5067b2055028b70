// The mean of each channel's pixels. Planes are images of one channel, so both layouts are samples
// x pixels x channels here.
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

template <class In, class Out>
struct Average {
  const In* input;
  Out* output;
  std::int64_t pixels, channels;
  __device__ void operator()(std::int64_t i) const {
    const In* first = input + i / channels * pixels * channels + i % channels;
    float sum = 0;
    for (std::int64_t p = 0; p < pixels; ++p) sum += to_float(first[p * channels]);
    output[i] = from_float<Out>(sum / static_cast<float>(pixels));
  }
};

template <class In, class Out>
struct Spread {
  const Out* gradient;
  In* target;
  std::int64_t pixels, channels;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t average = i / (pixels * channels) * channels + i % channels;
    const float share = to_float(gradient[average]) / static_cast<float>(pixels);
    target[i] = from_float<In>((add ? to_float(target[i]) : 0.0f) + share);
  }
};

class GlobalAveragePool : public Kernel {
 public:
  explicit GlobalAveragePool(const Site& site)
      : tools_(site.tools),
        count_(site.values()),
        pixels_(site.input(0).shape.height() * site.input(0).shape.width()),
        channels_(site.input_layout(0) == Layout::nhwc ? site.node.shape.channels() : 1),
        input_(site.input_dtype(0)),
        output_(site.dtype()) {}

  void run(Work work, const Operands& o) override {
    with_types(input_, output_, [&]<class In, class Out>() {
      if (work == Work::forward)
        for_each_index(tools_, count_,
                       Average<In, Out>{reinterpret_cast<const In*>(o.inputs[0]),
                                        reinterpret_cast<Out*>(o.output), pixels_, channels_});
      else if (o.gradient_modes[0] != GradientMode::none)
        for_each_index(tools_, count_ * pixels_,
                       Spread<In, Out>{reinterpret_cast<const Out*>(o.output_gradient),
                                       reinterpret_cast<In*>(o.input_gradients[0]), pixels_,
                                       channels_, o.gradient_modes[0] == GradientMode::add});
    });
  }

 private:
  const Tools& tools_;
  std::int64_t count_, pixels_, channels_;
  Dtype input_, output_;
};

}  // namespace

std::unique_ptr<Kernel> make_global_average_pool(const Site& site) {
  return std::make_unique<GlobalAveragePool>(site);
}

}  // namespace regatta::cuda
