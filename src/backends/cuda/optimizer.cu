#include <algorithm>

#include "backends/cuda/check.h"
#include "backends/cuda/optimizer.h"
#include "backends/cuda/vector.cuh"

namespace regatta::cuda {
namespace {

constexpr int threads = 256;

// Four floats a thread; the last thread takes what is left.
template <class Body>
__device__ void for_each_four(std::size_t count, const Body& body) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (4 * i + 4 <= count)
    body.template operator()<4>(4 * i);
  else
    for (std::size_t at = 4 * i; at < count; ++at) body.template operator()<1>(at);
}

unsigned blocks_for(std::size_t count) {
  return static_cast<unsigned>((count + 4 * threads - 1) / (4 * threads));
}

struct Slots {
  static constexpr std::size_t most = 64;
  int count = 0;
  const float* data[most];
};

struct AddSlots {
  float* sum;
  const Slots& slots;
  template <int V>
  __device__ void operator()(std::size_t at) const {
    Pack<float, V> total = load<V>(sum + at);
    for (int s = 0; s < slots.count; ++s) {
      const Pack<float, V> other = load<V>(slots.data[s] + at);
      for (int v = 0; v < V; ++v) total.values[v] += other.values[v];
    }
    store(sum + at, total);
  }
};

__global__ void __launch_bounds__(threads) add_slots(float* sum, Slots slots, std::size_t count) {
  for_each_four(count, AddSlots{sum, slots});
}

struct TakeStep {
  float learning_rate, momentum, weight_decay;
  const float* gradient;
  float *velocity, *parameters;
  template <int V>
  __device__ void operator()(std::size_t at) const {
    const Pack<float, V> g = load<V>(gradient + at);
    Pack<float, V> v = load<V>(velocity + at);
    Pack<float, V> p = load<V>(parameters + at);
    for (int i = 0; i < V; ++i) {
      const float slope = g.values[i] + weight_decay * p.values[i];
      v.values[i] = momentum * v.values[i] + slope;
      p.values[i] -= learning_rate * v.values[i];
    }
    store(velocity + at, v);
    store(parameters + at, p);
  }
};

__global__ void __launch_bounds__(threads)
    take_step(const float* hyper, const float* gradient, float* velocity, float* parameters,
              std::size_t count) {
  for_each_four(count, TakeStep{hyper[0], hyper[1], hyper[2], gradient, velocity, parameters});
}

}  // namespace

void reduce_slots(Stream stream, float* sum, std::span<const float* const> others,
                  std::size_t count) {
  if (count == 0) return;
  while (!others.empty()) {
    Slots slots;
    slots.count = static_cast<int>(std::min(others.size(), Slots::most));
    std::copy_n(others.begin(), slots.count, slots.data);
    others = others.subspan(static_cast<std::size_t>(slots.count));
    add_slots<<<blocks_for(count), threads, 0, stream>>>(sum, slots, count);
    check(cudaGetLastError());
  }
}

void sgd_step(Stream stream, const float* hyper, const float* gradient, float* velocity,
              float* parameters, std::size_t count) {
  if (count == 0) return;
  take_step<<<blocks_for(count), threads, 0, stream>>>(hyper, gradient, velocity, parameters,
                                                       count);
  check(cudaGetLastError());
}

}  // namespace regatta::cuda
