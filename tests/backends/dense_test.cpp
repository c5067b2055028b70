// Dense layers on bf16 values.
#include <gtest/gtest.h>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/cpu_backend.h"
#include "support/bf16_here.h"
#include "support/small_networks.h"
#include "tasks/blueprint.h"

namespace regatta::cpu {
namespace {

// A hidden layer of 3 features of 4 inputs, and the logits.
Graph hidden_and_logits() {
  return build(
      {"dense", {4, 1, 1}, [](NetBuilder& n) { return head(n, n.dense("a", n.input(), 3)); }});
}

const Node& named(const Graph& graph, std::string_view name) {
  return *std::ranges::find(graph.nodes(), name, &Node::name);
}

TEST(DenseInBf16, HasRoundedWeightsExceptTheLogits) {
  const Graph graph = hidden_and_logits();
  DeviceGroup cores;
  cores.kind = DeviceKind::cpu;
  EXPECT_EQ(packed_bytes(graph, named(graph, "a"), cores, Precision::bf16), 3 * 4 * 2u);
  EXPECT_EQ(packed_bytes(graph, named(graph, "a"), cores, Precision::fp32), 0u);
  EXPECT_EQ(packed_bytes(graph, named(graph, "head"), cores, Precision::bf16), 0u);
}

// All products and sums are exact, and the first two inputs cancel unless the weight 1 + 2^-9,
// which bf16 cannot hold, has not been rounded.
TEST(DenseInBf16, MultipliesByTheRoundedWeights) {
  SKIP_WITHOUT_BF16();
  const Graph graph = hidden_and_logits();
  const Node& dense = named(graph, "a");
  Backend backend(graph, preferred_layout(), 1, Dtype::f32, {}, Precision::bf16);
  Worker worker(backend);
  const float finer = 1 + 1.0f / 512;
  const std::vector<float> weights{finer, 1, 1, 1, finer, 1, 1, 1, finer, 1, 1, 1}, bias{0, 1, 2};
  std::vector<std::byte> packed(weights.size() * sizeof(Bfloat16));
  const std::array<const float*, 2> parameters{weights.data(), bias.data()};
  worker.pack(dense, parameters, packed.data(), packed.size());

  alignas(64) std::array<Bfloat16, 4> input;
  alignas(64) std::array<Bfloat16, 3> output;
  narrow(std::array{64.0f, -64.0f, 4.0f, 2.0f}.data(), input.data(), 4);
  Operands o;
  o.n = 1;
  o.inputs[0] = reinterpret_cast<const float*>(input.data());
  o.output = reinterpret_cast<float*>(output.data());
  o.parameters = parameters;
  o.packed = packed.data();
  worker.run({dense.id, Work::forward}, o);
  std::array<float, 3> found{};
  widen(output.data(), found.data(), 3);
  EXPECT_EQ(found, (std::array{6.0f, 7.0f, 8.0f}));
}

}  // namespace
}  // namespace regatta::cpu
