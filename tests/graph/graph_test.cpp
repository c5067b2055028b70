#include "graph/graph.h"

#include <gtest/gtest.h>

#include <utility>

#include "graph/op.h"
#include "ops/ops.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using Extents = std::vector<std::int64_t>;

struct Start {
  GraphBuilder builder{"net"};
  NodeId input = builder.add(input_op, "input", {}, {{"shape", Extents{8}}});
};

TEST(Attributes, OneNumberMeansBothOfAPair) {
  const Attributes attributes{{"stride", 2}, {"kernel", Extents{3, 5}}};
  EXPECT_EQ(attributes.pair("stride", 1), (std::pair<std::int64_t, std::int64_t>{2, 2}));
  EXPECT_EQ(attributes.pair("kernel", 1), (std::pair<std::int64_t, std::int64_t>{3, 5}));
  EXPECT_EQ(attributes.pair("padding", 0), (std::pair<std::int64_t, std::int64_t>{0, 0}));
}

TEST(Attributes, AWholeNumberServesAsAReal) {
  const Attributes attributes{{"epsilon", 1}};
  EXPECT_EQ(attributes.real("epsilon", 0.5), 1.0);
  EXPECT_EQ(attributes.real("momentum", 0.5), 0.5);
}

TEST(GraphBuilder, DeclaresParametersUnderTheNodesName) {
  auto [builder, input] = Start{};
  const NodeId dense = builder.add(dense_op, "fc", {input}, {{"features", 3}});
  builder.add(cross_entropy_op, "loss", {dense}, {});
  const Graph graph = std::move(builder).finish();
  ASSERT_EQ(graph.parameters().size(), 2u);
  EXPECT_EQ(graph.parameters()[0].name, "fc.weight");
  EXPECT_EQ(graph.parameters()[0].shape, (Shape{3, 8}));
  EXPECT_EQ(graph.parameters()[1].name, "fc.bias");
  EXPECT_EQ(graph.parameters()[1].node, dense);
  EXPECT_EQ(graph.logits(), dense);
  EXPECT_EQ(graph.classes(), 3);
  EXPECT_EQ(graph.users(input), std::vector{dense});
}

TEST(GraphBuilder, NamesANodeAfterItsOperatorIfNobodyDoes) {
  auto [builder, input] = Start{};
  EXPECT_EQ(builder.node(builder.add(relu_op, "", {input}, {})).name, "relu1");
}

TEST(GraphBuilder, RefusesANameTwice) {
  auto [builder, input] = Start{};
  builder.add(relu_op, "same", {input}, {});
  EXPECT_EQ(error_text([&] { builder.add(relu_op, "same", {input}, {}); }),
            "relu 'same': the name is taken");
}

TEST(GraphBuilder, RefusesAnInputFromTheFuture) {
  auto [builder, input] = Start{};
  EXPECT_EQ(error_text([&] { builder.add(relu_op, "early", {NodeId{5}}, {}); }),
            "relu 'early': its input does not exist yet");
}

TEST(GraphBuilder, RefusesAValueThatNothingReads) {
  auto [builder, input] = Start{};
  builder.add(relu_op, "lonely", {input}, {});
  const NodeId dense = builder.add(dense_op, "fc", {input}, {{"features", 3}});
  builder.add(cross_entropy_op, "loss", {dense}, {});
  EXPECT_EQ(error_text([&] { std::move(builder).finish(); }),
            "model 'net': nothing reads 'lonely'");
}

TEST(GraphBuilder, RefusesASecondInput) {
  auto [builder, input] = Start{};
  const NodeId other = builder.add(input_op, "other", {}, {{"shape", Extents{8}}});
  const NodeId sum = builder.add(add_op, "sum", {input, other}, {});
  builder.add(cross_entropy_op, "loss", {sum}, {});
  EXPECT_EQ(error_text([&] { std::move(builder).finish(); }),
            "model 'net': 'other' must read what the input leads to");
}

TEST(GraphBuilder, RefusesANetworkWithNothingToTrain) {
  auto [builder, input] = Start{};
  const NodeId relu = builder.add(relu_op, "", {input}, {});
  builder.add(cross_entropy_op, "loss", {relu}, {});
  EXPECT_EQ(error_text([&] { std::move(builder).finish(); }),
            "model 'net': it has no parameters to train");
}

}  // namespace
}  // namespace regatta
