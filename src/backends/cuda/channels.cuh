// Sums over, and passes over, all values of each channel: the shape that batch norm and the
// gradients of biases share. Channels are innermost (rows of channels) or outside (planes of
// pixels). Sums are taken in two stages of fixed order, so that they never change from run to run:
// a thread adds floats, blocks add threads in double, and one last block per 32 channels adds
// blocks.
//
// What is summed is a Term, what a pass does is a Map. Both are templates of T and V (channels a
// thread keeps) and say:
//   Constants constants(int channel, int64 first)  per-channel numbers; `first`: the channel's
//   first
//                                                  value
//   Loaded load(int64 at)                          all that one step reads, so that several steps'
//                                                  loads are under way before the first is used
//   Term: void add(constants, loaded, float (&sums)[V], float (&products)[V])
//   Map:  void apply(constants, loaded, int64 at)
#pragma once

#include "backends/cuda/each.cuh"

namespace regatta::cuda {

struct ChannelView {
  ChannelView(const Shape& shape, Layout layout, std::int64_t samples)
      : n(samples),
        pixels(shape.height() * shape.width()),
        channels(static_cast<int>(shape.channels())),
        innermost(layout == Layout::nhwc || pixels == 1) {}

  std::int64_t n, pixels;
  int channels;
  bool innermost;

  __host__ __device__ std::int64_t rows() const { return n * pixels; }  // values of one channel
  __host__ __device__ std::int64_t first(int channel) const {
    return innermost ? channel : channel * pixels;
  }
};

// How blocks share a view out. Depends on its sizes and the device alone: sums are reproducible.
struct Tiling {
  Tiling(const ChannelView& view, int V, int processors) {
    const int wanted = 4 * processors;
    if (!view.innermost) {
      block = dim3(threads_per_block);
      const std::int64_t splits = std::max<std::int64_t>(1, wanted / view.channels);
      grid = dim3(static_cast<unsigned>(view.channels),
                  static_cast<unsigned>(std::min(splits, view.n)));
      return;
    }
    const int vectors = view.channels / V;
    const int columns = (vectors + 31) / 32;
    const int width = (vectors + columns - 1) / columns;  // at most a warp, near it where it can be
    const int height = threads_per_block / width;
    const std::int64_t most = (view.rows() + 4 * height - 1) / (4 * height);
    block = dim3(static_cast<unsigned>(width), static_cast<unsigned>(height));
    grid = dim3(static_cast<unsigned>((vectors + width - 1) / width),
                static_cast<unsigned>(std::clamp<std::int64_t>(wanted / columns, 1, most)));
  }
  dim3 grid, block;
  int parts() const { return static_cast<int>(grid.y); }  // blocks that add to one channel
};

// Doubles of workspace that a sum over `view` needs, whatever V it runs with.
inline std::size_t partial_sums(const ChannelView& view, int processors) {
  return static_cast<std::size_t>(4 * processors + 1) * 2 * static_cast<std::size_t>(view.channels);
}

// Calls use(loaded, at) for the rows of one thread: U rows' loads at a time, then what is left.
template <int U, class Body, class Use>
__device__ void walk_rows(const ChannelView& view, int channel, const Body& body, const Use& use) {
  const std::int64_t step = std::int64_t{gridDim.y} * blockDim.y;
  std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const auto at = [&](std::int64_t r) { return r * view.channels + channel; };
  for (; row + (U - 1) * step < view.rows(); row += U * step) {
    typename Body::Loaded loaded[U];
#pragma unroll
    for (int u = 0; u < U; ++u) loaded[u] = body.load(at(row + u * step));
#pragma unroll
    for (int u = 0; u < U; ++u) use(loaded[u], at(row + u * step));
  }
  for (; row < view.rows(); row += step) use(body.load(at(row)), at(row));
}

// Partial sums lie as parts x 2 x channels.
template <class T, int V, template <class, int> class Term>
__global__ void __launch_bounds__(threads_per_block)
    sum_rows(ChannelView view, Term<T, V> term, double* partials) {
  __shared__ float shared[2][threads_per_block * V];
  const int vector = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const bool real = vector < view.channels / V;
  float sums[V] = {}, products[V] = {};
  if (real) {
    const int channel = vector * V;
    const auto constants = term.constants(channel, view.first(channel));
    walk_rows<4>(view, channel, term, [&](const auto& loaded, std::int64_t) {
      term.add(constants, loaded, sums, products);
    });
  }
  const int width = static_cast<int>(blockDim.x) * V;
  for (int v = 0; v < V; ++v) {
    const int slot = static_cast<int>(threadIdx.y) * width + static_cast<int>(threadIdx.x) * V + v;
    shared[0][slot] = sums[v];
    shared[1][slot] = products[v];
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  for (int i = thread; i < 2 * width; i += threads) {
    const int which = i / width, column = i % width;
    const int channel = static_cast<int>(blockIdx.x) * width + column;
    if (channel >= view.channels) continue;
    double sum = 0;
    for (int y = 0; y < static_cast<int>(blockDim.y); ++y)
      sum += static_cast<double>(shared[which][y * width + column]);
    partials[(std::int64_t{blockIdx.y} * 2 + which) * view.channels + channel] = sum;
  }
}

template <class T, template <class, int> class Term>
__global__ void __launch_bounds__(threads_per_block)
    sum_planes(ChannelView view, Term<T, 1> term, double* partials) {
  __shared__ double shared[2][threads_per_block];
  const int channel = static_cast<int>(blockIdx.x);
  const auto constants = term.constants(channel, view.first(channel));
  float sums[1] = {}, products[1] = {};
  for (std::int64_t sample = blockIdx.y; sample < view.n; sample += gridDim.y) {
    const std::int64_t plane = (sample * view.channels + channel) * view.pixels;
    for (std::int64_t p = threadIdx.x; p < view.pixels; p += blockDim.x)
      term.add(constants, term.load(plane + p), sums, products);
  }
  shared[0][threadIdx.x] = static_cast<double>(sums[0]);
  shared[1][threadIdx.x] = static_cast<double>(products[0]);
  for (unsigned half = threads_per_block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    shared[0][threadIdx.x] += shared[0][threadIdx.x + half];
    shared[1][threadIdx.x] += shared[1][threadIdx.x + half];
  }
  __syncthreads();
  if (threadIdx.x < 2)
    partials[(std::int64_t{blockIdx.y} * 2 + threadIdx.x) * view.channels + channel] =
        shared[threadIdx.x][0];
}

// Adds the blocks' sums and calls finish(channel, sum, sum of products) once per channel.
template <class Finish>
__global__ void finish_channels(const double* partials, int parts, int channels, Finish finish) {
  constexpr int width = 32, height = 16;
  __shared__ double shared[2][height][width];
  const int channel = static_cast<int>(blockIdx.x) * width + static_cast<int>(threadIdx.x);
  double sum = 0, product = 0;
  if (channel < channels)
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += height) {
      const double* rows = partials + std::int64_t{part} * 2 * channels;
      sum += rows[channel];
      product += rows[channels + channel];
    }
  shared[0][threadIdx.y][threadIdx.x] = sum;
  shared[1][threadIdx.y][threadIdx.x] = product;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  for (int y = 1; y < height; ++y) {
    sum += shared[0][y][threadIdx.x];
    product += shared[1][y][threadIdx.x];
  }
  finish(channel, sum, product);
}

template <class T, int V, template <class, int> class Map>
__global__ void __launch_bounds__(threads_per_block) map_rows(ChannelView view, Map<T, V> map) {
  const int vector = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (vector >= view.channels / V) return;
  const int channel = vector * V;
  const auto constants = map.constants(channel, view.first(channel));
  walk_rows<2>(view, channel, map,
               [&](const auto& loaded, std::int64_t at) { map.apply(constants, loaded, at); });
}

template <class T, template <class, int> class Map>
__global__ void __launch_bounds__(threads_per_block) map_planes(ChannelView view, Map<T, 1> map) {
  const int channel = static_cast<int>(blockIdx.x);
  const auto constants = map.constants(channel, view.first(channel));
  for (std::int64_t sample = blockIdx.y; sample < view.n; sample += gridDim.y) {
    const std::int64_t plane = (sample * view.channels + channel) * view.pixels;
    for (std::int64_t p = threadIdx.x; p < view.pixels; p += blockDim.x)
      map.apply(constants, map.load(plane + p), plane + p);
  }
}

// The one place that chooses between planes, rows of vectors and rows of single channels.
// `arguments` are what every Term or Map of this name is made of, whatever its V.
template <class T, template <class, int> class Term, class Finish, class... Arguments>
void sum_channels(const Tools& tools, const ChannelView& view, double* partials,
                  const Finish& finish, const Arguments&... arguments) {
  constexpr int V = lanes<T>;
  const bool wide = view.innermost && view.channels % V == 0;
  const Tiling tiling(view, wide ? V : 1, tools.processors);
  if (!view.innermost)
    sum_planes<T, Term>
        <<<tiling.grid, tiling.block, 0, tools.stream>>>(view, Term<T, 1>{arguments...}, partials);
  else if (wide)
    sum_rows<T, V, Term>
        <<<tiling.grid, tiling.block, 0, tools.stream>>>(view, Term<T, V>{arguments...}, partials);
  else
    sum_rows<T, 1, Term>
        <<<tiling.grid, tiling.block, 0, tools.stream>>>(view, Term<T, 1>{arguments...}, partials);
  const auto blocks = static_cast<unsigned>((view.channels + 31) / 32);
  finish_channels<<<blocks, dim3(32, 16), 0, tools.stream>>>(partials, tiling.parts(),
                                                             view.channels, finish);
}

template <class T, template <class, int> class Map, class... Arguments>
void map_channels(const Tools& tools, const ChannelView& view, const Arguments&... arguments) {
  constexpr int V = lanes<T>;
  const bool wide = view.innermost && view.channels % V == 0;
  const Tiling tiling(view, wide ? V : 1, 2 * tools.processors);
  if (!view.innermost)
    map_planes<T, Map>
        <<<tiling.grid, tiling.block, 0, tools.stream>>>(view, Map<T, 1>{arguments...});
  else if (wide)
    map_rows<T, V, Map>
        <<<tiling.grid, tiling.block, 0, tools.stream>>>(view, Map<T, V>{arguments...});
  else
    map_rows<T, 1, Map>
        <<<tiling.grid, tiling.block, 0, tools.stream>>>(view, Map<T, 1>{arguments...});
}

// The sums alone, for the gradient of a bias.
template <class T, int V>
struct PlainSum {
  const T* values;

  struct Constants {};
  using Loaded = Pack<T, V>;
  __device__ Constants constants(int, std::int64_t) const { return {}; }
  __device__ Loaded load(std::int64_t at) const { return cuda::load<V>(values + at); }
  __device__ void add(const Constants&, const Loaded& loaded, float (&sums)[V],
                      float (&)[V]) const {
    for (int v = 0; v < V; ++v) sums[v] += to_float(loaded.values[v]);
  }
};

struct BiasGradient {
  float* slot;
  bool add;
  __device__ void operator()(int channel, double sum, double) const {
    const auto gradient = static_cast<float>(sum);
    slot[channel] = add ? slot[channel] + gradient : gradient;
  }
};

}  // namespace regatta::cuda
