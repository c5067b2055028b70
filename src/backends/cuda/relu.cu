// max(x, 0), element by element, where no operator before it could take it in.
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

template <class In, class Out, int V>
struct Rectify {
  const In* input;
  Out* output;
  __device__ void operator()(std::int64_t i) const {
    const auto x = load<V>(input + i * V);
    Pack<Out, V> y;
    for (int v = 0; v < V; ++v) y.values[v] = from_float<Out>(fmaxf(to_float(x.values[v]), 0.0f));
    store(output + i * V, y);
  }
};

template <class In, class Out, int V>
struct RectifyGradient {
  const Out *output, *gradient;
  In* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const auto y = load<V>(output + i * V);
    const auto dy = load<V>(gradient + i * V);
    Pack<In, V> dx{};
    if (add) dx = load<V>(target + i * V);
    for (int v = 0; v < V; ++v) {
      const float masked = to_float(y.values[v]) > 0 ? to_float(dy.values[v]) : 0.0f;
      dx.values[v] = from_float<In>(add ? to_float(dx.values[v]) + masked : masked);
    }
    store(target + i * V, dx);
  }
};

class Relu : public Kernel {
 public:
  explicit Relu(const Site& site)
      : tools_(site.tools),
        count_(site.values()),
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
    if (work == Work::forward) {
      for_each_index(tools_, count_ / V,
                     Rectify<In, Out, V>{reinterpret_cast<const In*>(o.inputs[0]),
                                         reinterpret_cast<Out*>(o.output)});
    } else if (o.gradient_modes[0] != GradientMode::none) {
      for_each_index(tools_, count_ / V,
                     RectifyGradient<In, Out, V>{reinterpret_cast<const Out*>(o.output),
                                                 reinterpret_cast<const Out*>(o.output_gradient),
                                                 reinterpret_cast<In*>(o.input_gradients[0]),
                                                 o.gradient_modes[0] == GradientMode::add});
    }
  }

  const Tools& tools_;
  std::int64_t count_;
  Dtype input_, output_;
};

}  // namespace

std::unique_ptr<Kernel> make_relu(const Site& site) { return std::make_unique<Relu>(site); }

}  // namespace regatta::cuda
