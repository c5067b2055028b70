// Which values stay planes where a CPU computes in blocks of channels.
#include <gtest/gtest.h>

#include "graph/op.h"
#include "graph/program.h"
#include "models/models.h"

namespace regatta {
namespace {

std::vector<std::string_view> planar_images(const Graph& graph, Layout preferred) {
  std::vector<std::string_view> names;
  const std::vector<Layout> layouts = value_layouts(graph, preferred);
  for (const Node& node : graph.nodes())
    if (node.shape.rank() == 3 && layouts[node.id.value] == Layout::nchw)
      names.push_back(node.op->name);
  return names;
}

using Names = std::vector<std::string_view>;

TEST(ValueLayouts, AThinFirstConvolutionStaysPlanarUntilItIsFlattened) {
  EXPECT_EQ(planar_images(fuse(build_model("tiny")), Layout::blocked16),
            (Names{"input", "conv", "max_pool", "relu"}));
  EXPECT_EQ(planar_images(build_model("tiny"), Layout::blocked8),
            (Names{"input", "conv", "relu", "max_pool"}));
}

TEST(ValueLayouts, WhatAnotherConvolutionReadsIsInBlocks) {
  EXPECT_EQ(planar_images(fuse(build_model("lenet5")), Layout::blocked16), Names{"input"});
  EXPECT_EQ(planar_images(fuse(build_model("resnet18")), Layout::blocked16), Names{"input"});
}

TEST(ValueLayouts, NarrowRowsAreInBlocks) {
  const Graph graph = build_model("tiny", {.input = Shape{1, 16, 16}, .classes = 10});
  EXPECT_EQ(planar_images(graph, Layout::blocked16), Names{"input"});
}

TEST(ValueLayouts, GpusKeepTheirOwn) {
  EXPECT_EQ(planar_images(fuse(build_model("tiny")), Layout::nhwc), Names{});
}

}  // namespace
}  // namespace regatta
