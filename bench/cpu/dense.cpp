// The three products of a dense layer on one core: in fp32 as dense.cpp computes them, and in bf16
// on rounded weights, with the rounding; bytes are those of the fp32 weights.
//   regatta_cpu_bench --benchmark_filter=dense
#include <benchmark/benchmark.h>

#include <cstdint>

#include "backends/cpu/onednn.h"

namespace regatta::cpu {
namespace {

using dnnl::memory;
using tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;
constexpr auto bf16 = memory::data_type::bf16;

memory values(const memory::desc& desc) {
  memory made(desc, engine());
  auto* bytes = static_cast<std::uint8_t*>(made.get_data_handle());
  // A pattern that is a number near 1 as float and as bf16.
  for (std::size_t i = 0; i + 1 < desc.get_size(); i += 2) {
    bytes[i] = static_cast<std::uint8_t>(i * 37);
    bytes[i + 1] = 0x3f;
  }
  return made;
}

struct Sizes {
  explicit Sizes(const benchmark::State& state)
      : n(state.range(0)), inputs(state.range(1)), features(state.range(2)) {
    prepare_onednn();
  }
  std::int64_t n, inputs, features;
};

void rate(benchmark::State& state, const Sizes& s) {
  state.SetBytesProcessed(state.iterations() * s.inputs * s.features * 4);
  state.counters["FLOPs"] = benchmark::Counter(
      2.0 * static_cast<double>(s.n * s.inputs * s.features),
      benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

enum class Pass { forward, input_gradient, weight_gradient };

template <Pass PASS>
void dense_fp32(benchmark::State& state) {
  const Sizes s(state);
  memory x = values({{s.n, s.inputs}, f32, tag::ab}), y = values({{s.n, s.features}, f32, tag::ab}),
         w = values({{s.features, s.inputs}, f32, tag::ab});
  const auto data = [](const memory& m) { return static_cast<float*>(m.get_data_handle()); };
  for (auto _ : state) {
    if (PASS == Pass::forward)
      dnnl_sgemm('N', 'T', s.n, s.features, s.inputs, 1, data(x), s.inputs, data(w), s.inputs, 0,
                 data(y), s.features);
    else if (PASS == Pass::input_gradient)
      dnnl_sgemm('N', 'N', s.n, s.inputs, s.features, 1, data(y), s.features, data(w), s.inputs, 0,
                 data(x), s.inputs);
    else
      dnnl_sgemm('T', 'N', s.features, s.inputs, s.n, 1, data(y), s.features, data(x), s.inputs, 0,
                 data(w), s.inputs);
  }
  rate(state, s);
}

void run(benchmark::State& state, const Sizes& s, Launch& launch,
         std::initializer_list<memory> all) {
  const auto at = [&](std::size_t i) { return all.begin()[i].get_data_handle(); };
  for (auto _ : state) launch({at(0), at(1), at(2), at(3)});
  rate(state, s);
}

template <Pass PASS>
void dense_bf16_matmul(benchmark::State& state) {
  const Sizes s(state);
  memory::desc a, b, c;
  if (PASS == Pass::forward) {
    a = {{s.n, s.inputs}, bf16, tag::ab}, b = {{s.inputs, s.features}, bf16, tag::ba};
    c = {{s.n, s.features}, bf16, tag::ab};
  } else if (PASS == Pass::input_gradient) {
    a = {{s.n, s.features}, bf16, tag::ab}, b = {{s.features, s.inputs}, bf16, tag::ab};
    c = {{s.n, s.inputs}, bf16, tag::ab};
  } else {
    a = {{s.features, s.n}, bf16, tag::ba}, b = {{s.n, s.inputs}, bf16, tag::ab};
    c = {{s.features, s.inputs}, f32, tag::ab};
  }
  const auto described = describe<dnnl::matmul>(user_scratchpad(), a, b, c);
  Launch launch(described);
  launch.argument(DNNL_ARG_SRC, a);
  launch.argument(DNNL_ARG_WEIGHTS, b);
  launch.argument(DNNL_ARG_DST, c);
  launch.argument(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
  state.SetLabel(described.impl_info_str());
  run(state, s, launch,
      {values(a), values(b), values(c), memory(described.scratchpad_desc(), engine())});
}

struct Products {
  explicit Products(const Sizes& s)
      : x({s.n, s.inputs}, bf16, tag::ab),
        y({s.n, s.features}, bf16, tag::ab),
        any({s.features, s.inputs}, bf16, tag::any),
        plain({s.features, s.inputs}, f32, tag::ab),
        forward(describe<dnnl::inner_product_forward>(
            user_scratchpad(), dnnl::prop_kind::forward_training, x, any, y)),
        input_gradient(describe_backward<dnnl::inner_product_backward_data>(user_scratchpad(),
                                                                            forward, x, any, y)),
        weight_gradient(describe_backward<dnnl::inner_product_backward_weights>(
            user_scratchpad(), forward, x, plain, y)) {}
  memory::desc x, y, any, plain;
  dnnl::inner_product_forward::primitive_desc forward;
  dnnl::inner_product_backward_data::primitive_desc input_gradient;
  dnnl::inner_product_backward_weights::primitive_desc weight_gradient;
};

template <Pass PASS>
void dense_bf16_inner_product(benchmark::State& state) {
  const Sizes s(state);
  const Products p(s);
  Launch launch;
  memory::desc w, scratch;
  const auto take = [&](const auto& described, const memory::desc& weights) {
    launch = Launch(described);
    w = weights, scratch = described.scratchpad_desc();
    state.SetLabel(described.impl_info_str());
  };
  if (PASS == Pass::forward) {
    take(p.forward, p.forward.weights_desc());
    launch.argument(DNNL_ARG_SRC, p.x);
    launch.argument(DNNL_ARG_WEIGHTS, w);
    launch.argument(DNNL_ARG_DST, p.y);
  } else if (PASS == Pass::input_gradient) {
    take(p.input_gradient, p.input_gradient.weights_desc());
    launch.argument(DNNL_ARG_DIFF_SRC, p.x);
    launch.argument(DNNL_ARG_WEIGHTS, w);
    launch.argument(DNNL_ARG_DIFF_DST, p.y);
  } else {
    take(p.weight_gradient, p.weight_gradient.diff_weights_desc());
    launch.argument(DNNL_ARG_SRC, p.x);
    launch.argument(DNNL_ARG_DIFF_WEIGHTS, w);
    launch.argument(DNNL_ARG_DIFF_DST, p.y);
  }
  launch.argument(DNNL_ARG_SCRATCHPAD, scratch);
  run(state, s, launch, {values(p.x), values(w), values(p.y), memory(scratch, engine())});
}

// fp32 weights rounded into the forms that the inner products want, or kept in order.
template <Pass PASS>
void dense_rounding(benchmark::State& state) {
  const Sizes s(state);
  const Products p(s);
  memory::desc to({s.features, s.inputs}, bf16, tag::ab);
  if (PASS == Pass::forward) to = p.forward.weights_desc();
  if (PASS == Pass::input_gradient) to = p.input_gradient.weights_desc();
  const dnnl::reorder::primitive_desc described(engine(), p.plain, engine(), to, user_scratchpad());
  Launch launch(described);
  launch.argument(DNNL_ARG_FROM, p.plain);
  launch.argument(DNNL_ARG_TO, to);
  launch.argument(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
  memory a = values(p.plain), b = values(to), c(described.scratchpad_desc(), engine());
  for (auto _ : state) launch({a.get_data_handle(), b.get_data_handle(), c.get_data_handle()});
  state.SetLabel(described.impl_info_str());
  rate(state, s);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"n", "in", "out"})->Unit(benchmark::kMillisecond);
  for (const int n : {4, 16, 64})
    for (const auto& [in, out] : {std::pair{25088, 4096}, {4096, 4096}, {4096, 1000}})
      bench->Args({n, in, out});
}
void weights(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"n", "in", "out"})->Unit(benchmark::kMillisecond);
  for (const auto& [in, out] : {std::pair{25088, 4096}, {4096, 4096}, {4096, 1000}})
    bench->Args({16, in, out});
}

BENCHMARK(dense_fp32<Pass::forward>)->Apply(sizes);
BENCHMARK(dense_bf16_matmul<Pass::forward>)->Apply(sizes);
BENCHMARK(dense_bf16_inner_product<Pass::forward>)->Apply(sizes);
BENCHMARK(dense_fp32<Pass::input_gradient>)->Apply(sizes);
BENCHMARK(dense_bf16_matmul<Pass::input_gradient>)->Apply(sizes);
BENCHMARK(dense_bf16_inner_product<Pass::input_gradient>)->Apply(sizes);
BENCHMARK(dense_fp32<Pass::weight_gradient>)->Apply(sizes);
BENCHMARK(dense_bf16_matmul<Pass::weight_gradient>)->Apply(sizes);
BENCHMARK(dense_bf16_inner_product<Pass::weight_gradient>)->Apply(sizes);
BENCHMARK(dense_rounding<Pass::forward>)->Apply(weights);
BENCHMARK(dense_rounding<Pass::input_gradient>)->Apply(weights);
BENCHMARK(dense_rounding<Pass::weight_gradient>)->Apply(weights);  // in order

}  // namespace
}  // namespace regatta::cpu
