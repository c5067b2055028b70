// Convolutions of 3x3 by the direct algorithm and by Winograd's, on one core: the multiplications
// and additions of the direct algorithm per second of the core's own time, whichever is used.
//   regatta_cpu_bench --benchmark_filter=convolution
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "backends/cpu/onednn.h"

namespace regatta::cpu {
namespace {

using dnnl::memory;

enum class Pass { forward, backward_data, backward_weights };

constexpr auto direct = dnnl::algorithm::convolution_direct;
constexpr auto winograd = dnnl::algorithm::convolution_winograd;

// oneDNN allocates it: Winograd's kernels want whole cache lines.
memory random_values(const memory::desc& desc) {
  memory values(desc, engine());
  auto* data = static_cast<float*>(values.get_data_handle());
  std::uint32_t random = 1;
  for (std::size_t i = 0; i < desc.get_size() / sizeof(float); ++i) {
    random = random * 1664525u + 1013904223u;
    data[i] = static_cast<float>(random >> 8) / 8388608.0f - 1.0f;
  }
  return values;
}

void run(benchmark::State& state, Launch launch, std::initializer_list<memory::desc> descs) {
  std::vector<memory> tensors;
  for (const memory::desc& desc : descs) tensors.push_back(random_values(desc));
  const auto at = [&](std::size_t i) { return tensors[i].get_data_handle(); };
  for (auto _ : state) launch({at(0), at(1), at(2), at(3)});
  const auto channels = static_cast<double>(state.range(0)),
             side = static_cast<double>(state.range(1)),
             samples = static_cast<double>(state.range(2));
  state.counters["FLOPs"] = benchmark::Counter(2 * 9 * channels * channels * side * side * samples,
                                               benchmark::Counter::kIsIterationInvariantRate,
                                               benchmark::Counter::kIs1000);
}

template <Pass PASS, dnnl::algorithm ALGORITHM>
void convolution(benchmark::State& state) {
  const std::int64_t channels = state.range(0), side = state.range(1), samples = state.range(2);
  const auto f32 = memory::data_type::f32;
  const memory::desc values({samples, channels, side, side}, f32, memory::format_tag::nChw16c);
  const memory::desc weights({channels, channels, 3, 3}, f32, memory::format_tag::any);
  const memory::dims one{1, 1};
  const dnnl::primitive_attr attr = user_scratchpad();
  try {
    const auto forward = describe<dnnl::convolution_forward>(
        attr, dnnl::prop_kind::forward_training, ALGORITHM, values, weights, values, one, one, one);
    Launch launch;
    memory::desc packed, scratch;
    if constexpr (PASS == Pass::forward) {
      launch = Launch(forward);
      packed = forward.weights_desc(), scratch = forward.scratchpad_desc();
      launch.argument(DNNL_ARG_SRC, values);
      launch.argument(DNNL_ARG_WEIGHTS, packed);
      launch.argument(DNNL_ARG_DST, values);
    } else if constexpr (PASS == Pass::backward_data) {
      const auto described = describe_backward<dnnl::convolution_backward_data>(
          attr, forward, ALGORITHM, values, weights, values, one, one, one);
      launch = Launch(described);
      packed = described.weights_desc(), scratch = described.scratchpad_desc();
      launch.argument(DNNL_ARG_DIFF_SRC, values);
      launch.argument(DNNL_ARG_WEIGHTS, packed);
      launch.argument(DNNL_ARG_DIFF_DST, values);
    } else {
      const auto described = describe_backward<dnnl::convolution_backward_weights>(
          attr, forward, ALGORITHM, values, weights, values, one, one, one);
      launch = Launch(described);
      packed = described.diff_weights_desc(), scratch = described.scratchpad_desc();
      launch.argument(DNNL_ARG_SRC, values);
      launch.argument(DNNL_ARG_DIFF_WEIGHTS, packed);
      launch.argument(DNNL_ARG_DIFF_DST, values);
    }
    launch.argument(DNNL_ARG_SCRATCHPAD, scratch);
    run(state, launch, {values, packed, values, scratch});
  } catch (const dnnl::error&) {
    state.SkipWithError("the library has no such kernel for this processor");
  }
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"channels", "side", "samples"});
  for (const auto& [channels, side] :
       {std::pair{16, 32}, {32, 16}, {64, 56}, {128, 28}, {256, 14}, {512, 7}})
    for (const int samples : {1, 2, 4, 16}) bench->Args({channels, side, samples});
}

BENCHMARK(convolution<Pass::forward, direct>)->Apply(sizes);
BENCHMARK(convolution<Pass::forward, winograd>)->Apply(sizes);
BENCHMARK(convolution<Pass::backward_data, direct>)->Apply(sizes);
BENCHMARK(convolution<Pass::backward_data, winograd>)->Apply(sizes);
BENCHMARK(convolution<Pass::backward_weights, direct>)->Apply(sizes);
BENCHMARK(convolution<Pass::backward_weights, winograd>)->Apply(sizes);

}  // namespace
}  // namespace regatta::cpu
