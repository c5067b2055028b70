#include <gtest/gtest.h>

#include "ops/builder.h"
#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(Concat, GradientsMatchDifferences) {
  OpHarness(concat_op, {}, {Shape{2, 3, 2}, Shape{1, 3, 2}, Shape{4, 3, 2}}, 3)
      .expect_gradients_match_differences();
  OpHarness(concat_op, {}, {Shape{3}, Shape{5}}, 2).expect_gradients_match_differences();
}

TEST(Concat, KeepsSamplesTogether) {
  OpHarness concat(concat_op, {}, {Shape{1, 1, 2}, Shape{2, 1, 2}}, 2);
  concat.inputs = {{1, 2, 3, 4}, {10, 20, 30, 40, 50, 60, 70, 80}};
  EXPECT_EQ(concat.forward(), (std::vector<double>{1, 2, 10, 20, 30, 40, 3, 4, 50, 60, 70, 80}));
}

TEST(Concat, OfManyIsAChain) {
  NetBuilder net("many", {1, 4, 4});
  std::vector<NodeId> parts;
  for (int i = 0; i < 20; ++i)
    parts.push_back(net.conv("conv" + std::to_string(i), net.input(), {.channels = 1 + i % 3}));
  EXPECT_EQ(net.concat({parts[3]}), parts[3]);
  const NodeId logits = net.dense("fc", net.concat(parts), 2);
  const Graph graph = std::move(net).finish(logits);
  std::vector<std::size_t> counts;
  for (const Node& node : graph.nodes())
    if (node.op == &concat_op) counts.push_back(node.inputs.size());
  EXPECT_EQ(counts, (std::vector<std::size_t>{8, 8, 6}));
  EXPECT_EQ(graph.nodes()[graph.nodes().size() - 4].shape, (Shape{39, 4, 4}));
}

TEST(Concat, RefusesWhatCannotBe) {
  expect_refused(concat_op, {}, {Shape{3}}, "concat 'layer': it takes 2 to 8 inputs, found 1");
  expect_refused(concat_op, {}, std::vector<Shape>(9, Shape{3}),
                 "concat 'layer': it takes 2 to 8 inputs, found 9");
  expect_refused(concat_op, {}, {Shape{3, 2, 2}, Shape{3, 2, 1}},
                 "concat 'layer': its inputs may differ in channels alone, found 3x2x2 and 3x2x1");
  expect_refused(concat_op, {}, {Shape{3, 1, 1}, Shape{3}},
                 "concat 'layer': its inputs may differ in channels alone, found 3x1x1 and 3");
}

}  // namespace
}  // namespace regatta
