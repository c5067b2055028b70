#include "backends/cuda/each.cuh"
#include "backends/cuda/fused.h"

namespace regatta::cuda {
namespace {

template <class T, int V>
struct Finish {
  T* values;
  const float* bias;
  std::int64_t pixels, channels;
  bool relu;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t first = index * V;
    auto pack = load<V>(values + first);
    for (int v = 0; v < V; ++v) {
      float value = to_float(pack.values[v]);
      if (bias) value += bias[(first + v) / pixels % channels];
      pack.values[v] = from_float<T>(relu ? rectified(value) : value);
    }
    store(values + first, pack);
  }
};

template <class From, class To, int V>
struct Mask {
  const From *output, *gradient;
  To* target;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t first = index * V;
    const auto dy = load<V>(gradient + first);
    Pack<From, V> y{};
    if (output) y = load<V>(output + first);
    Pack<To, V> result;
    for (int v = 0; v < V; ++v) {
      const bool passed = !output || to_float(y.values[v]) > 0;
      result.values[v] = from_float<To>(passed ? to_float(dy.values[v]) : 0.0f);
    }
    store(target + first, result);
  }
};

}  // namespace

void finish_forward(const Tools& tools, const FusedForward& work) {
  with_type(work.dtype, [&]<class T>() {
    const auto launch = [&]<int V>() {
      for_each_index(tools, work.count / V,
                     Finish<T, V>{static_cast<T*>(work.values), work.bias, work.pixels,
                                  work.channels, work.relu});
    };
    if (work.count % lanes<T> == 0)
      launch.template operator()<lanes<T>>();
    else
      launch.template operator()<1>();
  });
}

void begin_backward(const Tools& tools, const FusedBackward& work) {
  with_type(work.dtype, [&]<class From>() {
    with_type(work.target_dtype, [&]<class To>() {
      const auto launch = [&]<int V>() {
        for_each_index(tools, work.count / V,
                       Mask<From, To, V>{static_cast<const From*>(work.output),
                                         static_cast<const From*>(work.gradient),
                                         static_cast<To*>(work.target)});
      };
      if (work.count % lanes<From> == 0)
        launch.template operator()<lanes<From>>();
      else
        launch.template operator()<1>();
    });
  });
}

}  // namespace regatta::cuda
