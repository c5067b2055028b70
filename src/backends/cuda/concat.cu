// Values one after another along their channels. Each is seen as rows: of channels at every pixel
// where they lie innermost, of whole samples otherwise. One launch moves all of them.
#include <algorithm>
#include <numeric>

#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

// Where each input's part of a row of the output begins, in elements; at `count` the row ends.
struct Pieces {
  int count = 0;
  int begins[most_inputs + 1] = {};

  __device__ int holding(int column) const {
    int piece = 0;
    while (column >= begins[piece + 1]) ++piece;
    return piece;
  }
};

template <class In, class Out, int V>
struct Join {
  Pieces pieces;
  const In* inputs[most_inputs];
  Out* output;
  __device__ void operator()(std::int64_t i) const {
    const int width = pieces.begins[pieces.count], vectors = width / V;
    const std::int64_t row = i / vectors;
    const int column = static_cast<int>(i % vectors) * V, piece = pieces.holding(column);
    const int begin = pieces.begins[piece], own = pieces.begins[piece + 1] - begin;
    const auto x = load<V>(inputs[piece] + row * own + (column - begin));
    Pack<Out, V> y;
    for (int v = 0; v < V; ++v) y.values[v] = from_float<Out>(to_float(x.values[v]));
    store(output + i * V, y);
  }
};

// A null target wants no gradient.
template <class In, class Out, int V>
struct Split {
  Pieces pieces;
  const Out* gradient;
  In* targets[most_inputs];
  bool add[most_inputs];
  __device__ void operator()(std::int64_t i) const {
    const int width = pieces.begins[pieces.count], vectors = width / V;
    const std::int64_t row = i / vectors;
    const int column = static_cast<int>(i % vectors) * V, piece = pieces.holding(column);
    if (!targets[piece]) return;
    const int begin = pieces.begins[piece], own = pieces.begins[piece + 1] - begin;
    In* to = targets[piece] + row * own + (column - begin);
    const auto dy = load<V>(gradient + i * V);
    Pack<In, V> dx{};
    if (add[piece]) dx = load<V>(to);
    for (int v = 0; v < V; ++v) {
      const float kept = add[piece] ? to_float(dx.values[v]) : 0.0f;
      dx.values[v] = from_float<In>(kept + to_float(dy.values[v]));
    }
    store(to, dx);
  }
};

class Concat : public Kernel {
 public:
  explicit Concat(const Site& site)
      : tools_(site.tools), input_(site.input_dtype(0)), output_(site.dtype()) {
    const bool innermost = site.layout() == Layout::nhwc;
    const std::int64_t pixels = site.node.shape.height() * site.node.shape.width();
    rows_ = innermost ? site.n * pixels : site.n;
    pieces_.count = static_cast<int>(site.node.inputs.size());
    for (std::size_t i = 0; i < site.node.inputs.size(); ++i) {
      if (site.input_dtype(i) != input_)
        throw InputError("concat '" + site.node.name +
                         "': in bf16 the logits cannot be joined: use --precision fp32");
      const std::int64_t own = site.input(i).shape.channels() * (innermost ? 1 : pixels);
      pieces_.begins[i + 1] = pieces_.begins[i] + static_cast<int>(own);
      common_ = std::gcd(common_, own);
    }
  }

  void run(Work work, const Operands& o) override {
    with_types(input_, output_, [&]<class In, class Out>() {
      if (common_ % lanes<In> == 0)
        launch<In, Out, lanes<In>>(work, o);
      else
        launch<In, Out, 1>(work, o);
    });
  }

 private:
  template <class In, class Out, int V>
  void launch(Work work, const Operands& o) const {
    const std::int64_t vectors = rows_ * (pieces_.begins[pieces_.count] / V);
    if (work == Work::forward) {
      Join<In, Out, V> body{pieces_, {}, reinterpret_cast<Out*>(o.output)};
      for (int i = 0; i < pieces_.count; ++i)
        body.inputs[i] = reinterpret_cast<const In*>(o.inputs[static_cast<std::size_t>(i)]);
      for_each_index(tools_, vectors, body);
      return;
    }
    // A value may stand in several places of the list: its parts are then added one by one.
    Split<In, Out, V> body{pieces_, reinterpret_cast<const Out*>(o.output_gradient), {}, {}};
    std::array<bool, most_inputs> done{};
    for (int left = pieces_.count; left > 0;) {
      for (int i = 0; i < pieces_.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        body.targets[i] = nullptr;
        if (done[at]) continue;
        auto* target = reinterpret_cast<In*>(o.input_gradients[at]);
        const bool wanted = o.gradient_modes[at] != GradientMode::none;
        if (wanted && std::find(body.targets, body.targets + i, target) != body.targets + i)
          continue;
        if (wanted) body.targets[i] = target;
        body.add[i] = o.gradient_modes[at] == GradientMode::add;
        done[at] = true;
        --left;
      }
      for_each_index(tools_, vectors, body);
    }
  }

  const Tools& tools_;
  Dtype input_, output_;
  std::int64_t rows_ = 0, common_ = 0;  // common_: divides every width
  Pieces pieces_;
};

}  // namespace

std::unique_ptr<Kernel> make_concat(const Site& site) { return std::make_unique<Concat>(site); }

}  // namespace regatta::cuda
