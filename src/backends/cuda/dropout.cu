// Dropout draws what to drop from the element's place alone, so that backward finds it again and
// layouts do not matter. The step lies on the device: a captured graph draws anew each time.
#include "backends/cuda/each.cuh"
#include "ops/dropout.h"

namespace regatta::cuda {
namespace {

struct Draws {
  DropoutDraw draw;
  const std::uint64_t* step;  // on the device
  std::uint64_t seed, first;  // first: position of the chunk's first element in the whole batch
  // The size of an image whose channels are innermost; planes and vectors have one channel.
  std::int64_t pixels, channels;

  __device__ std::uint64_t key() const { return dropout_key(seed, draw.stream, *step); }
  // What the element at `i` of the chunk's memory is multiplied by.
  __device__ float factor(std::uint64_t key, std::int64_t i) const {
    const std::int64_t channel = i % channels, pixel = i / channels % pixels;
    const std::int64_t sample = i / channels / pixels;
    const std::int64_t plain = (sample * channels + channel) * pixels + pixel;
    const bool kept =
        dropout_keeps(key, first + static_cast<std::uint64_t>(plain), draw.probability);
    return kept ? draw.scale : 0.0f;
  }
};

// From input to output in forward, from the output's gradient to the input's in backward.
template <class From, class To, int V>
struct Drop {
  Draws draws;
  const From* from;
  To* to;
  bool training, add;
  __device__ void operator()(std::int64_t i) const {
    const auto x = load<V>(from + i * V);
    Pack<To, V> y{};
    if (add) y = load<V>(to + i * V);
    const std::uint64_t key = training ? draws.key() : 0;
    for (int v = 0; v < V; ++v) {
      const float factor = training ? draws.factor(key, i * V + v) : 1.0f;
      const float kept = factor * to_float(x.values[v]);
      y.values[v] = from_float<To>(add ? to_float(y.values[v]) + kept : kept);
    }
    store(to + i * V, y);
  }
};

class Dropout : public Kernel {
 public:
  explicit Dropout(const Site& site)
      : tools_(site.tools),
        count_(site.values()),
        elements_(site.node.shape.elements()),
        draw_(dropout_draw(site.node)),
        input_(site.input_dtype(0)),
        output_(site.dtype()) {
    const bool innermost = site.layout() == Layout::nhwc;
    channels_ = innermost ? site.node.shape.channels() : 1;
    pixels_ = elements_ / channels_;
  }

  void run(Work work, const Operands& o) override {
    with_types(input_, output_, [&]<class In, class Out>() {
      if (work == Work::forward)
        choose_width<In, Out>(o, reinterpret_cast<const In*>(o.inputs[0]),
                              reinterpret_cast<Out*>(o.output), false);
      else if (o.gradient_modes[0] != GradientMode::none)
        choose_width<Out, In>(o, reinterpret_cast<const Out*>(o.output_gradient),
                              reinterpret_cast<In*>(o.input_gradients[0]),
                              o.gradient_modes[0] == GradientMode::add);
    });
  }

 private:
  template <class From, class To>
  void choose_width(const Operands& o, const From* from, To* to, bool add) const {
    constexpr int V = std::max(lanes<From>, lanes<To>);
    if (count_ % V == 0)
      launch<From, To, V>(o, from, to, add);
    else
      launch<From, To, 1>(o, from, to, add);
  }

  template <class From, class To, int V>
  void launch(const Operands& o, const From* from, To* to, bool add) const {
    const Draws draws{draw_,   tools_.step,
                      o.seed,  static_cast<std::uint64_t>(o.first_sample * elements_),
                      pixels_, channels_};
    for_each_index(tools_, count_ / V,
                   Drop<From, To, V>{draws, from, to, o.pass == Pass::train, add});
  }

  const Tools& tools_;
  std::int64_t count_, elements_, pixels_ = 1, channels_ = 1;
  DropoutDraw draw_;
  Dtype input_, output_;
};

}  // namespace

std::unique_ptr<Kernel> make_dropout(const Site& site) { return std::make_unique<Dropout>(site); }

}  // namespace regatta::cuda
