// An image seen as a vector, channel by channel: a copy of planes, a transposition of channels
// last.
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

// Planes are images of one channel, so both layouts are pixels x channels here.
struct Transposition {
  std::int64_t pixels, channels;
  __device__ std::int64_t image_index(std::int64_t flat) const {
    const std::int64_t pixel = flat % pixels;
    const std::int64_t channel = flat / pixels % channels;
    const std::int64_t sample = flat / (pixels * channels);
    return (sample * pixels + pixel) * channels + channel;
  }
};

template <class In, class Out>
struct ToVector {
  Transposition by;
  const In* input;
  Out* output;
  __device__ void operator()(std::int64_t i) const {
    output[i] = from_float<Out>(to_float(input[by.image_index(i)]));
  }
};

template <class In, class Out>
struct ToImage {
  Transposition by;
  const Out* gradient;
  In* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    In& to = target[by.image_index(i)];
    to = from_float<In>((add ? to_float(to) : 0.0f) + to_float(gradient[i]));
  }
};

class Flatten : public Kernel {
 public:
  explicit Flatten(const Site& site)
      : tools_(site.tools),
        count_(site.values()),
        input_(site.input_dtype(0)),
        output_(site.dtype()) {
    const Shape& shape = site.input(0).shape;
    by_ = {shape.height() * shape.width(),
           site.input_layout(0) == Layout::nhwc ? shape.channels() : 1};
  }

  void run(Work work, const Operands& o) override {
    with_types(input_, output_, [&]<class In, class Out>() {
      if (work == Work::forward)
        for_each_index(tools_, count_,
                       ToVector<In, Out>{by_, reinterpret_cast<const In*>(o.inputs[0]),
                                         reinterpret_cast<Out*>(o.output)});
      else if (o.gradient_modes[0] != GradientMode::none)
        for_each_index(tools_, count_,
                       ToImage<In, Out>{by_, reinterpret_cast<const Out*>(o.output_gradient),
                                        reinterpret_cast<In*>(o.input_gradients[0]),
                                        o.gradient_modes[0] == GradientMode::add});
    });
  }

 private:
  const Tools& tools_;
  std::int64_t count_;
  Transposition by_{};
  Dtype input_, output_;
};

}  // namespace

std::unique_ptr<Kernel> make_flatten(const Site& site) { return std::make_unique<Flatten>(site); }

}  // namespace regatta::cuda
