// The largest value under a sliding window; which input won travels to backward in the stash.
// Backward asks each input which windows it won, so that no two threads add to one gradient.
// Planes are images of one channel, so both layouts are samples x rows x columns x channels here.
#include "backends/cuda/each.cuh"
#include "ops/window.h"

namespace regatta::cuda {
namespace {

struct Geometry {
  int height, width, out_height, out_width, channels;
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
};

// V channels of one pixel.
struct Pixel {
  std::int64_t sample;
  int row, column, channel;
};

template <int V>
__device__ Pixel place_of(std::int64_t i, int height, int width, int channels) {
  const int vectors = channels / V;
  const std::int64_t pixel = i / vectors;
  return {pixel / (height * width), static_cast<int>(pixel / width % height),
          static_cast<int>(pixel % width), static_cast<int>(i % vectors) * V};
}

template <class T, class Tap, int V>
struct Pool {
  Geometry g;
  const T* input;
  T* output;
  Tap* winners;  // null when no backward will ask
  __device__ void operator()(std::int64_t i) const {
    const Pixel at = place_of<V>(i, g.out_height, g.out_width, g.channels);
    Pack<T, V> best{};
    Pack<Tap, V> winner{};
    bool first = true;
    for (int r = 0; r < g.kernel_h; ++r) {
      const int y = at.row * g.stride_h - g.pad_h + r * g.dilation_h;
      if (y < 0 || y >= g.height) continue;
      for (int s = 0; s < g.kernel_w; ++s) {
        const int x = at.column * g.stride_w - g.pad_w + s * g.dilation_w;
        if (x < 0 || x >= g.width) continue;
        const auto seen =
            load<V>(input + ((at.sample * g.height + y) * g.width + x) * g.channels + at.channel);
        const auto tap = static_cast<Tap>(r * g.kernel_w + s);
        // A NaN wins over all, as in the reference.
        for (int v = 0; v < V; ++v) {
          const float value = to_float(seen.values[v]);
          if (first || value > to_float(best.values[v]) || isnan(value)) {
            best.values[v] = seen.values[v];
            winner.values[v] = tap;
          }
        }
        first = false;
      }
    }
    store(output + i * V, best);
    if (winners) store(winners + i * V, winner);
  }
};

template <class T, class Tap, int V>
struct PoolGradient {
  Geometry g;
  const T* gradient;
  const Tap* winners;
  T* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const Pixel at = place_of<V>(i, g.height, g.width, g.channels);
    float sums[V] = {};
    if (add) {
      const auto before = load<V>(target + i * V);
      for (int v = 0; v < V; ++v) sums[v] = to_float(before.values[v]);
    }
    // The windows that span this pixel: row * stride - pad <= y < row * stride - pad + span.
    const int span_h = (g.kernel_h - 1) * g.dilation_h + 1;
    const int span_w = (g.kernel_w - 1) * g.dilation_w + 1;
    const int y = at.row + g.pad_h, x = at.column + g.pad_w;
    const int first_row = y < span_h ? 0 : (y - span_h) / g.stride_h + 1;
    const int first_column = x < span_w ? 0 : (x - span_w) / g.stride_w + 1;
    const int last_row = min(y / g.stride_h, g.out_height - 1);
    const int last_column = min(x / g.stride_w, g.out_width - 1);
    for (int row = first_row; row <= last_row; ++row)
      for (int column = first_column; column <= last_column; ++column) {
        int r = y - row * g.stride_h, s = x - column * g.stride_w;
        if (g.dilation_h > 1 || g.dilation_w > 1) {
          if (r % g.dilation_h != 0 || s % g.dilation_w != 0) continue;
          r /= g.dilation_h;
          s /= g.dilation_w;
        }
        const int tap = r * g.kernel_w + s;
        const std::int64_t from =
            ((at.sample * g.out_height + row) * g.out_width + column) * g.channels + at.channel;
        const auto winner = load<V>(winners + from);
        const auto dy = load<V>(gradient + from);
        for (int v = 0; v < V; ++v)
          if (static_cast<int>(winner.values[v]) == tap) sums[v] += to_float(dy.values[v]);
      }
    Pack<T, V> dx;
    for (int v = 0; v < V; ++v) dx.values[v] = from_float<T>(sums[v]);
    store(target + i * V, dx);
  }
};

class MaxPool : public Kernel {
 public:
  explicit MaxPool(const Site& site) : tools_(site.tools), dtype_(site.dtype()) {
    const Shape& in = site.input(0).shape;
    const Shape& out = site.node.shape;
    const Window window = window_of(site.node, 0);
    const bool planes = site.layout() == Layout::nchw;
    samples_ = planes ? site.n * in.channels() : site.n;
    const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
    geometry_ = {narrow(in.height()),
                 narrow(in.width()),
                 narrow(out.height()),
                 narrow(out.width()),
                 planes ? 1 : narrow(in.channels()),
                 narrow(window.kernel.height),
                 narrow(window.kernel.width),
                 narrow(window.stride.height),
                 narrow(window.stride.width),
                 narrow(window.padding.height),
                 narrow(window.padding.width),
                 narrow(window.dilation.height),
                 narrow(window.dilation.width)};
    byte_taps_ = site.node.op->stash_bytes(site.node, 1) == 1;
  }

  void run(Work work, const Operands& o) override {
    with_type(dtype_, [&]<class T>() {
      if (byte_taps_)
        choose_width<T, std::uint8_t>(work, o);
      else
        choose_width<T, std::int32_t>(work, o);
    });
  }

 private:
  template <class T, class Tap>
  void choose_width(Work work, const Operands& o) const {
    if (geometry_.channels % lanes<T> == 0)
      launch<T, Tap, lanes<T>>(work, o);
    else
      launch<T, Tap, 1>(work, o);
  }

  template <class T, class Tap, int V>
  void launch(Work work, const Operands& o) const {
    const Geometry& g = geometry_;
    const std::int64_t vectors = samples_ * (g.channels / V);
    if (work == Work::forward) {
      for_each_index(
          tools_, vectors * g.out_height * g.out_width,
          Pool<T, Tap, V>{g, reinterpret_cast<const T*>(o.inputs[0]),
                          reinterpret_cast<T*>(o.output), reinterpret_cast<Tap*>(o.stash)});
    } else if (o.gradient_modes[0] != GradientMode::none) {
      for_each_index(tools_, vectors * g.height * g.width,
                     PoolGradient<T, Tap, V>{g, reinterpret_cast<const T*>(o.output_gradient),
                                             reinterpret_cast<const Tap*>(o.stash),
                                             reinterpret_cast<T*>(o.input_gradients[0]),
                                             o.gradient_modes[0] == GradientMode::add});
    }
  }

  const Tools& tools_;
  Dtype dtype_;
  std::int64_t samples_ = 0;
  Geometry geometry_{};
  bool byte_taps_ = true;
};

}  // namespace

std::unique_ptr<Kernel> make_max_pool(const Site& site) { return std::make_unique<MaxPool>(site); }

}  // namespace regatta::cuda
