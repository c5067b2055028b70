// Batch norm's passes beside plain streams on the same core: bytes a second of the core's own time.
// Sizes are those of ResNet-50 at 224x224, for two samples: from 12.8 MB (larger than most second
// caches) down to 0.8 MB.
//   regatta_cpu_bench [flags of Google Benchmark]
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/cpu/batch_norm_loops.h"
#include "backends/cpu/lanes.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

struct Values {
  explicit Values(const benchmark::State& state) {
    const std::int64_t channels = state.range(0), side = state.range(1), samples = state.range(2);
    at = {.samples = samples,
          .blocks = channels / 16,
          .pixels = side * side,
          .sample_stride = channels * side * side,
          .block_stride = side * side * 16,
          .pixel_stride = 16};
    for (auto* values : {&input, &output, &gradient, &target, &other}) {
      values->resize(static_cast<std::size_t>(at.values()));
      std::uint32_t random = 1;
      for (float& value : *values) {
        random = random * 1664525u + 1013904223u;
        value = static_cast<float>(random >> 8) / 8388608.0f - 1.0f;
      }
    }
    rows.assign(5 * static_cast<std::size_t>(channels), 0.5f);
    sums.assign(2 * static_cast<std::size_t>(channels), 0.0);
  }

  NormScale scale() const {
    const auto row = static_cast<std::size_t>(at.blocks * 16);
    return {rows.data(), rows.data() + row, rows.data() + 2 * row};
  }
  NormSlope slope() const {
    const auto row = static_cast<std::size_t>(at.blocks * 16);
    return {rows.data() + 3 * row, rows.data() + 4 * row};
  }
  double* second_sums() { return sums.data() + at.blocks * 16; }

  ChannelBlocks at;
  std::vector<float> input, output, gradient, target, other, rows;
  std::vector<double> sums;
};

// Reports what `tensors` tensors of this size come to, each moved once.
void report(benchmark::State& state, const Values& values, int tensors) {
  state.SetBytesProcessed(state.iterations() * values.at.values() * tensors *
                          static_cast<std::int64_t>(sizeof(float)));
}

REGATTA_CLONES float read_all(const float* from, std::int64_t count) {
  Lanes<16>::Floats sums[4] = {};
  for (std::int64_t i = 0; i + 64 <= count; i += 64)
    for (int u = 0; u < 4; ++u) {
      Lanes<16>::Floats value;
      load(value, from + i + 16 * u);
      sums[u] += value;
    }
  const Lanes<16>::Floats total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return total[0] + total[7];
}

void stream_read(benchmark::State& state) {
  Values values(state);
  for (auto _ : state) benchmark::DoNotOptimize(read_all(values.input.data(), values.at.values()));
  report(state, values, 1);
}

void stream_read_two(benchmark::State& state) {
  Values values(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(read_all(values.input.data(), values.at.values()));
    benchmark::DoNotOptimize(read_all(values.gradient.data(), values.at.values()));
  }
  report(state, values, 2);
}

void stream_copy(benchmark::State& state) {
  Values values(state);
  for (auto _ : state) {
    std::memcpy(values.target.data(), values.input.data(), values.input.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  report(state, values, 2);
}

void statistics(benchmark::State& state) {
  Values values(state);
  for (auto _ : state)
    add_sums(values.at, values.input.data(), values.sums.data(), values.second_sums());
  report(state, values, 1);
}

void normalise_relu(benchmark::State& state) {
  Values values(state);
  for (auto _ : state)
    normalise(values.at, values.input.data(), nullptr, values.target.data(), values.scale(), true);
  report(state, values, 2);
}

void normalise_residual_relu(benchmark::State& state) {
  Values values(state);
  for (auto _ : state)
    normalise(values.at, values.input.data(), values.other.data(), values.target.data(),
              values.scale(), true);
  report(state, values, 3);
}

template <ReluMask MASK>
void gradient_sums(benchmark::State& state) {
  Values values(state);
  const NormGradient from{values.input.data(), values.output.data(), values.gradient.data(), MASK};
  for (auto _ : state)
    add_gradient_sums(values.at, from, values.scale(), values.sums.data(), values.second_sums());
  report(state, values, MASK == ReluMask::output ? 3 : 2);
}

template <ReluMask MASK>
void gradient_apply(benchmark::State& state) {
  Values values(state);
  const bool residual = MASK == ReluMask::output;
  const NormGradient from{values.input.data(), values.output.data(), values.gradient.data(), MASK};
  for (auto _ : state)
    apply_gradient(values.at, from, values.scale(), values.slope(), values.target.data(),
                   GradientMode::write, values.other.data(),
                   residual ? GradientMode::write : GradientMode::none);
  report(state, values, residual ? 5 : 3);
}

void resnet50_sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"channels", "side", "samples"});
  bench->Args({64, 112, 8})->Args({256, 56, 2})->Args({512, 28, 2})->Args({1024, 14, 2});
  bench->Args({2048, 7, 2});
}

BENCHMARK(stream_read)->Apply(resnet50_sizes);
BENCHMARK(stream_read_two)->Apply(resnet50_sizes);
BENCHMARK(stream_copy)->Apply(resnet50_sizes);
BENCHMARK(statistics)->Apply(resnet50_sizes);
BENCHMARK(normalise_relu)->Apply(resnet50_sizes);
BENCHMARK(normalise_residual_relu)->Apply(resnet50_sizes);
BENCHMARK(gradient_sums<ReluMask::none>)->Apply(resnet50_sizes);
BENCHMARK(gradient_sums<ReluMask::input>)->Apply(resnet50_sizes);
BENCHMARK(gradient_sums<ReluMask::output>)->Apply(resnet50_sizes);
BENCHMARK(gradient_apply<ReluMask::input>)->Apply(resnet50_sizes);
BENCHMARK(gradient_apply<ReluMask::output>)->Apply(resnet50_sizes);

}  // namespace
}  // namespace regatta::cpu

BENCHMARK_MAIN();
