// The sum of two values, where no batch norm could take it in.
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

template <class In, class Out, int V>
struct Sum {
  const In *left, *right;
  Out* output;
  __device__ void operator()(std::int64_t i) const {
    const auto a = load<V>(left + i * V);
    const auto b = load<V>(right + i * V);
    Pack<Out, V> y;
    for (int v = 0; v < V; ++v)
      y.values[v] = from_float<Out>(to_float(a.values[v]) + to_float(b.values[v]));
    store(output + i * V, y);
  }
};

// Hands the gradient to both inputs in one pass; a null target wants none.
template <class In, class Out, int V>
struct SumGradient {
  const Out* gradient;
  In* targets[2];
  bool add[2];
  __device__ void operator()(std::int64_t i) const {
    const auto dy = load<V>(gradient + i * V);
    for (int t = 0; t < 2; ++t) {
      if (!targets[t]) continue;
      Pack<In, V> dx{};
      if (add[t]) dx = load<V>(targets[t] + i * V);
      for (int v = 0; v < V; ++v) {
        const float kept = add[t] ? to_float(dx.values[v]) : 0.0f;
        dx.values[v] = from_float<In>(kept + to_float(dy.values[v]));
      }
      store(targets[t] + i * V, dx);
    }
  }
};

class Add : public Kernel {
 public:
  explicit Add(const Site& site)
      : tools_(site.tools),
        count_(site.values()),
        input_(site.input_dtype(0)),
        output_(site.dtype()) {
    if (site.input_dtype(1) != input_)
      throw InputError("add '" + site.node.name +
                       "': in bf16 the logits cannot be added to: use --precision fp32");
  }

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
                     Sum<In, Out, V>{reinterpret_cast<const In*>(o.inputs[0]),
                                     reinterpret_cast<const In*>(o.inputs[1]),
                                     reinterpret_cast<Out*>(o.output)});
      return;
    }
    SumGradient<In, Out, V> body{reinterpret_cast<const Out*>(o.output_gradient), {}, {}};
    for (std::size_t i = 0; i < 2; ++i) {
      if (o.gradient_modes[i] == GradientMode::none) continue;
      body.targets[i] = reinterpret_cast<In*>(o.input_gradients[i]);
      body.add[i] = o.gradient_modes[i] == GradientMode::add;
    }
    for_each_index(tools_, count_ / V, body);
  }

  const Tools& tools_;
  std::int64_t count_;
  Dtype input_, output_;
};

}  // namespace

std::unique_ptr<Kernel> make_add(const Site& site) { return std::make_unique<Add>(site); }

}  // namespace regatta::cuda
