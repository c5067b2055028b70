#include "backends/cuda/channel_copy.h"
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

template <class From, class To, int V>
struct Copy {
  const From *from, *mask;
  To* to;
  const float* bias;
  int from_channels, to_channels;
  std::int64_t pixels;
  bool relu, add;

  __device__ void operator()(std::int64_t index) const {
    const std::int64_t i = index * V;
    const std::int64_t row = i / to_channels;
    Pack<To, V> result{};
    if (add) result = load<V>(to + i);
    for (int v = 0; v < V; ++v) {
      const auto column = static_cast<int>(i % to_channels) + v;
      if (column >= from_channels) continue;
      const std::int64_t at = row * from_channels + column;
      float value = to_float(from[at]);
      if (bias) value += bias[pixels == 1 ? column : at / pixels % from_channels];
      if (relu) value = fmaxf(value, 0.0f);
      if (mask && !(to_float(mask[at]) > 0)) value = 0;
      result.values[v] = from_float<To>(add ? to_float(result.values[v]) + value : value);
    }
    store(to + i, result);
  }
};

template <class From, class To, int V>
void launch(const Tools& tools, const ChannelCopy& c) {
  for_each_index(tools, c.rows * c.to_channels / V,
                 Copy<From, To, V>{static_cast<const From*>(c.from),
                                   static_cast<const From*>(c.mask), static_cast<To*>(c.to), c.bias,
                                   c.from_channels, c.to_channels, c.pixels, c.relu, c.add});
}

}  // namespace

void copy_channels(const Tools& tools, const ChannelCopy& copy) {
  with_type(copy.from_dtype, [&]<class From>() {
    with_type(copy.to_dtype, [&]<class To>() {
      if (copy.to_channels % 4 == 0)
        launch<From, To, 4>(tools, copy);
      else
        launch<From, To, 1>(tools, copy);
    });
  });
}

}  // namespace regatta::cuda
