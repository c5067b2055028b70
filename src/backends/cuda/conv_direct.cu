#include "backends/cuda/conv_direct.h"
#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

// --- any groups, any layout: a thread per result, a block per weight

struct OutputIndex {
  std::int64_t sample;
  int channel, row, column;
};

__device__ OutputIndex place_of(std::int64_t i, bool channels_last, int channels, int height,
                                int width) {
  const auto take = [&](int extent) {
    const std::int64_t whole = i / extent;
    const int rest = static_cast<int>(i - whole * extent);
    i = whole;
    return rest;
  };
  OutputIndex at{};
  if (channels_last) at.channel = take(channels);
  at.column = take(width);
  at.row = take(height);
  if (!channels_last) at.channel = take(channels);
  at.sample = i;
  return at;
}

__device__ std::int64_t index_of(const OutputIndex& at, bool channels_last, int channels,
                                 int height, int width) {
  if (channels_last)
    return ((at.sample * height + at.row) * width + at.column) * channels + at.channel;
  return ((at.sample * channels + at.channel) * height + at.row) * width + at.column;
}

__device__ std::int64_t input_index(const DirectConv& c, const OutputIndex& at) {
  return index_of(at, c.channels_last, c.stored_inputs, c.height, c.width);
}
__device__ std::int64_t output_index(const DirectConv& c, const OutputIndex& at) {
  return index_of(at, c.channels_last, c.outputs, c.out_height, c.out_width);
}

// `input`: number of the channel inside its group.
__device__ std::int64_t weight_index(const DirectConv& c, int output, int input, int tap) {
  const std::int64_t first = std::int64_t{output} * c.stored_group_inputs() * c.taps();
  return first + (c.channels_last ? tap * c.stored_group_inputs() + input : input * c.taps() + tap);
}

template <class T>
struct Forward {
  DirectConv c;
  const T *input, *weights;
  T* output;
  __device__ void operator()(std::int64_t i) const {
    const OutputIndex to = place_of(i, c.channels_last, c.outputs, c.out_height, c.out_width);
    const int first = to.channel / c.group_outputs() * c.group_inputs();
    float sum = 0;
    for (int channel = 0; channel < c.group_inputs(); ++channel)
      for (int r = 0; r < c.kernel_h; ++r) {
        const int y = to.row * c.stride_h - c.pad_h + r * c.dilation_h;
        if (y < 0 || y >= c.height) continue;
        for (int s = 0; s < c.kernel_w; ++s) {
          const int x = to.column * c.stride_w - c.pad_w + s * c.dilation_w;
          if (x < 0 || x >= c.width) continue;
          const std::int64_t from = input_index(c, {to.sample, first + channel, y, x});
          sum += to_float(input[from]) *
                 to_float(weights[weight_index(c, to.channel, channel, r * c.kernel_w + s)]);
        }
      }
    output[i] = from_float<T>(sum);
  }
};

template <class T>
struct InputGradient {
  DirectConv c;
  const T *weights, *gradient;
  T* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const OutputIndex to = place_of(i, c.channels_last, c.inputs, c.height, c.width);
    const int first = to.channel / c.group_inputs() * c.group_outputs();
    const int channel = to.channel % c.group_inputs();
    float sum = add ? to_float(target[i]) : 0.0f;
    for (int r = 0; r < c.kernel_h; ++r) {
      const int y = to.row + c.pad_h - r * c.dilation_h;
      if (y < 0 || y % c.stride_h != 0 || y / c.stride_h >= c.out_height) continue;
      for (int s = 0; s < c.kernel_w; ++s) {
        const int x = to.column + c.pad_w - s * c.dilation_w;
        if (x < 0 || x % c.stride_w != 0 || x / c.stride_w >= c.out_width) continue;
        for (int k = first; k < first + c.group_outputs(); ++k) {
          const std::int64_t from = output_index(c, {to.sample, k, y / c.stride_h, x / c.stride_w});
          sum += to_float(gradient[from]) *
                 to_float(weights[weight_index(c, k, channel, r * c.kernel_w + s)]);
        }
      }
    }
    target[i] = from_float<T>(sum);
  }
};

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    weight_gradient(DirectConv c, const T* input, const T* gradient, float* target, bool add) {
  __shared__ double shared[threads_per_block];
  const int tap = static_cast<int>(blockIdx.x % static_cast<unsigned>(c.taps()));
  const int rest = static_cast<int>(blockIdx.x / static_cast<unsigned>(c.taps()));
  const int channel = rest % c.group_inputs(), k = rest / c.group_inputs();
  const int first = k / c.group_outputs() * c.group_inputs();
  const std::int64_t pixels = std::int64_t{c.n} * c.out_height * c.out_width;
  float sum = 0;
  for (std::int64_t p = threadIdx.x; p < pixels; p += blockDim.x) {
    const OutputIndex at = place_of(p, true, 1, c.out_height, c.out_width);
    const int y = at.row * c.stride_h - c.pad_h + tap / c.kernel_w * c.dilation_h;
    const int x = at.column * c.stride_w - c.pad_w + tap % c.kernel_w * c.dilation_w;
    if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
    sum += to_float(gradient[output_index(c, {at.sample, k, at.row, at.column})]) *
           to_float(input[input_index(c, {at.sample, first + channel, y, x})]);
  }
  shared[threadIdx.x] = static_cast<double>(sum);
  for (unsigned half = threads_per_block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  float& to = target[blockIdx.x];
  to = (add ? to : 0.0f) + static_cast<float>(shared[0]);
}

// --- depthwise, channels last: weights lie as taps x channels, a thread takes V channels

template <class T, int V>
struct DepthwiseForward {
  DirectConv c;
  const T *input, *weights;
  T* output;
  __device__ void operator()(std::int64_t i) const {
    const OutputIndex to = place_of(i, true, c.inputs / V, c.out_height, c.out_width);
    const int channel = to.channel * V;
    float sums[V] = {};
    for (int r = 0; r < c.kernel_h; ++r) {
      const int y = to.row * c.stride_h - c.pad_h + r * c.dilation_h;
      if (y < 0 || y >= c.height) continue;
      for (int s = 0; s < c.kernel_w; ++s) {
        const int x = to.column * c.stride_w - c.pad_w + s * c.dilation_w;
        if (x < 0 || x >= c.width) continue;
        const auto seen =
            load<V>(input + ((to.sample * c.height + y) * c.width + x) * c.inputs + channel);
        const auto weight = load<V>(weights + (r * c.kernel_w + s) * c.inputs + channel);
        for (int v = 0; v < V; ++v)
          sums[v] += to_float(seen.values[v]) * to_float(weight.values[v]);
      }
    }
    Pack<T, V> result;
    for (int v = 0; v < V; ++v) result.values[v] = from_float<T>(sums[v]);
    store(output + i * V, result);
  }
};

template <class T, int V>
struct DepthwiseInputGradient {
  DirectConv c;
  const T *weights, *gradient;
  T* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const OutputIndex to = place_of(i, true, c.inputs / V, c.height, c.width);
    const int channel = to.channel * V;
    float sums[V] = {};
    if (add) {
      const auto before = load<V>(target + i * V);
      for (int v = 0; v < V; ++v) sums[v] = to_float(before.values[v]);
    }
    for (int r = 0; r < c.kernel_h; ++r) {
      const int y = to.row + c.pad_h - r * c.dilation_h, row = y / c.stride_h;
      if (y < 0 || row * c.stride_h != y || row >= c.out_height) continue;
      for (int s = 0; s < c.kernel_w; ++s) {
        const int x = to.column + c.pad_w - s * c.dilation_w, column = x / c.stride_w;
        if (x < 0 || column * c.stride_w != x || column >= c.out_width) continue;
        const auto dy =
            load<V>(gradient +
                    ((to.sample * c.out_height + row) * c.out_width + column) * c.inputs + channel);
        const auto weight = load<V>(weights + (r * c.kernel_w + s) * c.inputs + channel);
        for (int v = 0; v < V; ++v) sums[v] += to_float(dy.values[v]) * to_float(weight.values[v]);
      }
    }
    Pack<T, V> result;
    for (int v = 0; v < V; ++v) result.values[v] = from_float<T>(sums[v]);
    store(target + i * V, result);
  }
};

// Taps that a block sums at once: more would want more registers, fewer would read values again.
constexpr int taps_at_once = 3;

// How blocks share the sums out. Depends on sizes and device alone, so that sums never change.
struct DepthwiseTiling {
  DepthwiseTiling(const DirectConv& c, int V, int processors) {
    const int vectors = c.inputs / V;
    const int columns = (vectors + 31) / 32;
    const int across = (vectors + columns - 1) / columns;
    const int down = threads_per_block / across;
    const int tap_groups = (c.taps() + taps_at_once - 1) / taps_at_once;
    const std::int64_t rows = std::int64_t{c.n} * c.out_height * c.out_width;
    const std::int64_t most = (rows + 4 * down - 1) / (4 * down);
    const int wanted = 8 * processors / (columns * tap_groups);
    block = dim3(static_cast<unsigned>(across), static_cast<unsigned>(down));
    grid = dim3(static_cast<unsigned>((vectors + across - 1) / across),
                static_cast<unsigned>(
                    std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(most, most_parts))),
                static_cast<unsigned>(tap_groups));
  }
  static constexpr std::int64_t most_parts = 128;  // blocks that add to one weight
  dim3 grid, block;
};

// Partial sums lie as parts x taps x channels.
template <class T, int V>
__global__ void __launch_bounds__(threads_per_block)
    depthwise_sums(DirectConv c, const T* input, const T* gradient, double* partials) {
  __shared__ float shared[taps_at_once][threads_per_block * V];
  const int vector = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int first_tap = static_cast<int>(blockIdx.z) * taps_at_once;
  float sums[taps_at_once][V] = {};
  if (vector < c.inputs / V) {
    const int channel = vector * V;
    const std::int64_t rows = std::int64_t{c.n} * c.out_height * c.out_width;
    const std::int64_t step = std::int64_t{gridDim.y} * blockDim.y;
    for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows;
         row += step) {
      const OutputIndex at = place_of(row, true, 1, c.out_height, c.out_width);
      const auto dy = load<V>(gradient + row * c.inputs + channel);
#pragma unroll
      for (int t = 0; t < taps_at_once; ++t) {
        const int tap = first_tap + t;
        const int y = at.row * c.stride_h - c.pad_h + tap / c.kernel_w * c.dilation_h;
        const int x = at.column * c.stride_w - c.pad_w + tap % c.kernel_w * c.dilation_w;
        if (tap >= c.taps() || y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
        const auto seen =
            load<V>(input + ((at.sample * c.height + y) * c.width + x) * c.inputs + channel);
        for (int v = 0; v < V; ++v) sums[t][v] += to_float(dy.values[v]) * to_float(seen.values[v]);
      }
    }
  }
  const int width = static_cast<int>(blockDim.x) * V;
  for (int t = 0; t < taps_at_once; ++t)
    for (int v = 0; v < V; ++v)
      shared[t][static_cast<int>(threadIdx.y) * width + static_cast<int>(threadIdx.x) * V + v] =
          sums[t][v];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  for (int i = thread; i < taps_at_once * width; i += threads) {
    const int t = i / width, column = i % width;
    const int channel = static_cast<int>(blockIdx.x) * width + column;
    if (channel >= c.inputs || first_tap + t >= c.taps()) continue;
    double sum = 0;
    for (int y = 0; y < static_cast<int>(blockDim.y); ++y)
      sum += static_cast<double>(shared[t][y * width + column]);
    partials[(std::int64_t{blockIdx.y} * c.taps() + first_tap + t) * c.inputs + channel] = sum;
  }
}

struct AddParts {
  const double* partials;
  int parts, taps, channels;
  float* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    double sum = 0;
    for (int part = 0; part < parts; ++part)
      sum += partials[std::int64_t{part} * taps * channels + i];
    float& to = target[i % channels * taps + i / channels];
    to = (add ? to : 0.0f) + static_cast<float>(sum);
  }
};

// Calls body with the type and the vector width of a depthwise convolution.
template <class Body>
void with_width(const DirectConv& conv, const Body& body) {
  with_type(conv.dtype, [&]<class T>() {
    if (conv.inputs % lanes<T> == 0)
      body.template operator()<T, lanes<T>>();
    else
      body.template operator()<T, 1>();
  });
}

bool by_vectors(const DirectConv& conv) { return conv.channels_last && conv.depthwise(); }

}  // namespace

void direct_forward(const Tools& tools, const DirectConv& conv, const void* input,
                    const void* weights, void* output) {
  const std::int64_t results =
      std::int64_t{conv.n} * conv.outputs * conv.out_height * conv.out_width;
  if (by_vectors(conv))
    with_width(conv, [&]<class T, int V>() {
      for_each_index(
          tools, results / V,
          DepthwiseForward<T, V>{conv, static_cast<const T*>(input), static_cast<const T*>(weights),
                                 static_cast<T*>(output)});
    });
  else
    with_type(conv.dtype, [&]<class T>() {
      for_each_index(tools, results,
                     Forward<T>{conv, static_cast<const T*>(input), static_cast<const T*>(weights),
                                static_cast<T*>(output)});
    });
}

void direct_input_gradient(const Tools& tools, const DirectConv& conv, const void* weights,
                           const void* gradient, void* target, bool add) {
  const std::int64_t results = std::int64_t{conv.n} * conv.inputs * conv.height * conv.width;
  if (by_vectors(conv))
    with_width(conv, [&]<class T, int V>() {
      for_each_index(tools, results / V,
                     DepthwiseInputGradient<T, V>{conv, static_cast<const T*>(weights),
                                                  static_cast<const T*>(gradient),
                                                  static_cast<T*>(target), add});
    });
  else
    with_type(conv.dtype, [&]<class T>() {
      for_each_index(
          tools, results,
          InputGradient<T>{conv, static_cast<const T*>(weights), static_cast<const T*>(gradient),
                           static_cast<T*>(target), add});
    });
}

std::size_t direct_workspace_bytes(const DirectConv& conv, int processors) {
  if (!by_vectors(conv)) return 0;
  std::size_t bytes = 0;
  with_width(conv, [&]<class T, int V>() {
    const DepthwiseTiling tiling(conv, V, processors);
    bytes = std::size_t{tiling.grid.y} * static_cast<std::size_t>(conv.taps() * conv.inputs) *
            sizeof(double);
  });
  return bytes;
}

void direct_weight_gradient(const Tools& tools, const DirectConv& conv, const void* input,
                            const void* gradient, float* target, bool add, std::byte* workspace) {
  if (by_vectors(conv)) {
    auto* partials = reinterpret_cast<double*>(workspace);
    with_width(conv, [&]<class T, int V>() {
      const DepthwiseTiling tiling(conv, V, tools.processors);
      depthwise_sums<T, V><<<tiling.grid, tiling.block, 0, tools.stream>>>(
          conv, static_cast<const T*>(input), static_cast<const T*>(gradient), partials);
      for_each_index(tools, std::int64_t{conv.taps()} * conv.inputs,
                     AddParts{partials, static_cast<int>(tiling.grid.y), conv.taps(), conv.inputs,
                              target, add});
    });
    return;
  }
  with_type(conv.dtype, [&]<class T>() {
    const auto weights = static_cast<unsigned>(conv.outputs * conv.group_inputs() * conv.taps());
    weight_gradient<T><<<weights, threads_per_block, 0, tools.stream>>>(
        conv, static_cast<const T*>(input), static_cast<const T*>(gradient), target, add);
  });
}

}  // namespace regatta::cuda
