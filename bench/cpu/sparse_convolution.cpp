// Does a convolution whose weights are mostly zero pay on one core? A sparse kernel of the simplest
// good kind beside oneDNN's dense one, for the three sizes of ResNet-20's 3x3 convolutions with 16
// samples: forward (the gradient of the input costs the same), and the gradient of the weights that
// stay. The sparse kernel has 16 samples innermost, so that every weight that stays is one multiply
// and add of a vector for each pixel, whatever the image's size.
//   regatta_cpu_bench --benchmark_filter=convolution
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/cpu/lanes.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

using Vector = Lanes<16>::Floats;
constexpr std::int64_t samples = 16, kernel = 3;
constexpr int tile = 8;  // pixels, or weights, whose sums stay in registers; divides all sizes here

class Random {
 public:
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(state_ >> 8) / 8388608.0f - 1.0f;
  }

 private:
  std::uint32_t state_ = 1;
};

// The weights that stay, output channel by output channel.
struct SparseWeights {
  std::vector<std::int64_t> begin;   // by output channel, and one more
  std::vector<std::int64_t> offset;  // of the first input pixel that the weight reads
  std::vector<float> value;
};

struct Layer {
  Layer(std::int64_t channel_count, std::int64_t side_length, double density)
      : channels(channel_count), side(side_length), padded(side_length + 2) {
    Random random;
    input.resize(static_cast<std::size_t>(samples * channels * side * side));
    gradient.resize(input.size());
    for (float& each : input) each = random.next();
    for (float& each : gradient) each = random.next();
    weights.resize(static_cast<std::size_t>(channels * channels * kernel * kernel));
    for (float& each : weights) {
      const bool stays = (random.next() + 1) / 2 < density;
      each = stays ? random.next() : 0;
    }
    blocked_input.resize(static_cast<std::size_t>(channels * padded * padded * samples));
    blocked_output.resize(input.size());
    blocked_gradient.resize(input.size());
    for (std::int64_t n = 0; n < samples; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t y = 0; y < side; ++y)
          for (std::int64_t x = 0; x < side; ++x) {
            const auto from = static_cast<std::size_t>(((n * channels + c) * side + y) * side + x);
            blocked_input[static_cast<std::size_t>(
                ((c * padded + y + 1) * padded + x + 1) * samples + n)] = input[from];
            blocked_gradient[static_cast<std::size_t>(((c * side + y) * side + x) * samples + n)] =
                gradient[from];
          }
    for (std::int64_t to = 0; to < channels; ++to) {
      sparse.begin.push_back(std::ssize(sparse.value));
      for (std::int64_t from = 0; from < channels; ++from)
        for (std::int64_t k = 0; k < kernel * kernel; ++k) {
          const float value =
              weights[static_cast<std::size_t>((to * channels + from) * kernel * kernel + k)];
          if (value == 0) continue;
          sparse.value.push_back(value);
          sparse.offset.push_back(((from * padded + k / kernel) * padded + k % kernel) * samples);
        }
    }
    sparse.begin.push_back(std::ssize(sparse.value));
  }

  std::int64_t channels, side, padded;
  std::vector<float> input, gradient, weights;                         // sample by sample
  std::vector<float> blocked_input, blocked_output, blocked_gradient;  // 16 samples innermost
  SparseWeights sparse;
};

REGATTA_CLONES void sparse_forward(const SparseWeights& weights, std::int64_t channels,
                                   std::int64_t side, const float* input, float* output) {
  const std::int64_t padded = side + 2;
  for (std::int64_t to = 0; to < channels; ++to)
    for (std::int64_t y = 0; y < side; ++y)
      for (std::int64_t x = 0; x < side; x += tile) {
        Vector sums[tile] = {};
        const float* pixels = input + (y * padded + x) * samples;
        const auto end = static_cast<std::size_t>(weights.begin[static_cast<std::size_t>(to) + 1]);
        for (auto i = static_cast<std::size_t>(weights.begin[static_cast<std::size_t>(to)]);
             i < end; ++i) {
          const float* from = pixels + weights.offset[i];
          const float weight = weights.value[i];
          REGATTA_UNROLL
          for (int p = 0; p < tile; ++p) {
            Vector value;
            load(value, from + p * samples);
            sums[p] += value * weight;
          }
        }
        for (int p = 0; p < tile; ++p)
          store(sums[p], output + ((to * side + y) * side + x + p) * samples);
      }
}

REGATTA_CLONES void sparse_weight_gradient(const SparseWeights& weights, std::int64_t channels,
                                           std::int64_t side, const float* input,
                                           const float* gradient, float* result) {
  const std::int64_t padded = side + 2;
  for (std::int64_t to = 0; to < channels; ++to) {
    const std::int64_t end = weights.begin[static_cast<std::size_t>(to) + 1];
    for (std::int64_t i = weights.begin[static_cast<std::size_t>(to)]; i < end; i += tile) {
      // The last tile repeats its last weight.
      const float* from[tile];
      for (int k = 0; k < tile; ++k)
        from[k] = input + weights.offset[static_cast<std::size_t>(std::min(i + k, end - 1))];
      Vector sums[tile] = {};
      for (std::int64_t y = 0; y < side; ++y)
        for (std::int64_t x = 0; x < side; ++x) {
          Vector slope;
          load(slope, gradient + ((to * side + y) * side + x) * samples);
          REGATTA_UNROLL
          for (int k = 0; k < tile; ++k) {
            Vector value;
            load(value, from[k] + (y * padded + x) * samples);
            sums[k] += value * slope;
          }
        }
      for (int k = 0; k < tile && i + k < end; ++k) {
        float sum = 0;
        for (int lane = 0; lane < 16; ++lane) sum += sums[k][lane];
        result[i + k] = sum;
      }
    }
  }
}

// oneDNN's own layouts, in which a dense network stays from layer to layer.
class Dense {
 public:
  explicit Dense(const Layer& layer) {
    prepare_onednn();
    const dnnl::memory::dims image{samples, layer.channels, layer.side, layer.side},
        filter{layer.channels, layer.channels, kernel, kernel}, one{1, 1};
    const auto any = [](const dnnl::memory::dims& dims) {
      return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    };
    const auto described = describe<dnnl::convolution_forward>(
        {}, dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, any(image),
        any(filter), any(image), one, one, one);
    const auto backward = describe_backward<dnnl::convolution_backward_weights>(
        {}, described, dnnl::algorithm::convolution_direct, any(image), any(filter), any(image),
        one, one, one);
    forward_ = dnnl::convolution_forward(described);
    gradient_ = dnnl::convolution_backward_weights(backward);
    source_ = brought(layer.input, image, dnnl::memory::format_tag::nchw, described.src_desc());
    weights_ =
        brought(layer.weights, filter, dnnl::memory::format_tag::oihw, described.weights_desc());
    target_ = dnnl::memory(described.dst_desc(), engine());
    slope_ =
        brought(layer.gradient, image, dnnl::memory::format_tag::nchw, backward.diff_dst_desc());
    slope_source_ =
        brought(layer.input, image, dnnl::memory::format_tag::nchw, backward.src_desc());
    found_ = dnnl::memory(backward.diff_weights_desc(), engine());
  }

  void forward() {
    forward_.execute(
        stream(), {{DNNL_ARG_SRC, source_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, target_}});
    stream().wait();
  }
  void weight_gradient() {
    gradient_.execute(stream(), {{DNNL_ARG_SRC, slope_source_},
                                 {DNNL_ARG_DIFF_DST, slope_},
                                 {DNNL_ARG_DIFF_WEIGHTS, found_}});
    stream().wait();
  }
  std::vector<float> output(const Layer& layer) {
    return taken(target_, {samples, layer.channels, layer.side, layer.side},
                 dnnl::memory::format_tag::nchw, layer.input.size());
  }
  std::vector<float> weight_gradients(const Layer& layer) {
    return taken(found_, {layer.channels, layer.channels, kernel, kernel},
                 dnnl::memory::format_tag::oihw, layer.weights.size());
  }

 private:
  static dnnl::memory brought(const std::vector<float>& values, const dnnl::memory::dims& dims,
                              dnnl::memory::format_tag tag, const dnnl::memory::desc& into) {
    dnnl::memory from({dims, dnnl::memory::data_type::f32, tag}, engine(),
                      const_cast<float*>(values.data()));
    dnnl::memory to(into, engine());
    dnnl::reorder(from, to).execute(stream(), from, to);
    stream().wait();
    return to;
  }
  static std::vector<float> taken(dnnl::memory& from, const dnnl::memory::dims& dims,
                                  dnnl::memory::format_tag tag, std::size_t count) {
    std::vector<float> values(count);
    dnnl::memory to({dims, dnnl::memory::data_type::f32, tag}, engine(), values.data());
    dnnl::reorder(from, to).execute(stream(), from, to);
    stream().wait();
    return values;
  }

  dnnl::primitive forward_, gradient_;
  dnnl::memory source_, weights_, target_, slope_, slope_source_, found_;
};

// Both kernels compute the same: the largest difference, in parts of the largest value.
double difference(Layer& layer) {
  Dense dense(layer);
  dense.forward();
  dense.weight_gradient();
  sparse_forward(layer.sparse, layer.channels, layer.side, layer.blocked_input.data(),
                 layer.blocked_output.data());
  std::vector<float> found(layer.sparse.value.size());
  sparse_weight_gradient(layer.sparse, layer.channels, layer.side, layer.blocked_input.data(),
                         layer.blocked_gradient.data(), found.data());
  const std::vector<float> output = dense.output(layer), slopes = dense.weight_gradients(layer);
  double apart = 0, largest = 0;
  const auto compare = [&](float one, float other) {
    apart = std::max(apart, std::abs(static_cast<double>(one) - static_cast<double>(other)));
    largest = std::max(largest, std::abs(static_cast<double>(other)));
  };
  const std::int64_t pixels = layer.channels * layer.side * layer.side;
  for (std::int64_t n = 0; n < samples; ++n)
    for (std::int64_t p = 0; p < pixels; ++p)
      compare(layer.blocked_output[static_cast<std::size_t>(p * samples + n)],
              output[static_cast<std::size_t>(n * pixels + p)]);
  std::size_t next = 0;
  for (std::size_t i = 0; i < layer.weights.size(); ++i)
    if (layer.weights[i] != 0) compare(found[next++], slopes[i]);
  return largest > 0 ? apart / largest : 0;
}

// Channels, side of the image, per mille of the weights that stay.
Layer layer_of(const benchmark::State& state) {
  return {state.range(0), state.range(1), static_cast<double>(state.range(2)) / 1000};
}

void dense_convolution(benchmark::State& state) {
  const Layer layer = layer_of(state);
  Dense dense(layer);
  for (auto _ : state) dense.forward();
}
void dense_convolution_weight_gradient(benchmark::State& state) {
  const Layer layer = layer_of(state);
  Dense dense(layer);
  for (auto _ : state) dense.weight_gradient();
}
void sparse_convolution(benchmark::State& state) {
  Layer layer = layer_of(state);
  if (difference(layer) > 1e-4) state.SkipWithError("differs from oneDNN");
  for (auto _ : state)
    sparse_forward(layer.sparse, layer.channels, layer.side, layer.blocked_input.data(),
                   layer.blocked_output.data());
}
void sparse_convolution_weight_gradient(benchmark::State& state) {
  Layer layer = layer_of(state);
  if (difference(layer) > 1e-4) state.SkipWithError("differs from oneDNN");
  std::vector<float> found(layer.sparse.value.size());
  for (auto _ : state)
    sparse_weight_gradient(layer.sparse, layer.channels, layer.side, layer.blocked_input.data(),
                           layer.blocked_gradient.data(), found.data());
}

void dense_sizes(benchmark::internal::Benchmark* bench) {
  for (const auto& [channels, side] : {std::pair{16, 32}, {32, 16}, {64, 8}})
    bench->Args({channels, side, 1000});
}
void sparse_sizes(benchmark::internal::Benchmark* bench) {
  for (const auto& [channels, side] : {std::pair{16, 32}, {32, 16}, {64, 8}})
    for (const int density : {500, 200, 100, 50, 10}) bench->Args({channels, side, density});
}

BENCHMARK(dense_convolution)->Apply(dense_sizes);
BENCHMARK(sparse_convolution)->Apply(sparse_sizes);
BENCHMARK(dense_convolution_weight_gradient)->Apply(dense_sizes);
BENCHMARK(sparse_convolution_weight_gradient)->Apply(sparse_sizes);

}  // namespace
}  // namespace regatta::cpu
