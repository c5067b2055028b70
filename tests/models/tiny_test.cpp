#include <gtest/gtest.h>

#include "models/models.h"
#include "models/shapes_by_name.h"

namespace regatta {
namespace {

using Shapes = std::map<std::string, std::string>;

TEST(Tiny, IsOneConvolutionAndOneDenseLayer) {
  const Graph graph = build_model("tiny");
  EXPECT_EQ(shapes_by_name(graph), (Shapes{{"conv.weight", "4x1x3x3"},
                                           {"conv.bias", "4"},
                                           {"dense.weight", "10x676"},
                                           {"dense.bias", "10"}}));
  const ModelSummary summary = summarise(fuse(graph));
  EXPECT_EQ(summary.parameters, 6'810);
  EXPECT_EQ(summary.multiply_adds, 4 * 26 * 26 * 9 + 676 * 10);
  EXPECT_EQ(summary.meeting_points, 0);
  // Image, convolution, pooled, logits as floats, and a byte for each pooled winner.
  EXPECT_EQ(summary.activation_bytes, 4 * (784 + 2704 + 676 + 10) + 676);
}

TEST(Tiny, FitsOtherImagesAndClasses) {
  const Graph graph = build_model("tiny", {.input = Shape{3, 512, 512}, .classes = 2});
  EXPECT_EQ(shapes_by_name(graph).at("conv.weight"), "4x3x3x3");
  EXPECT_EQ(shapes_by_name(graph).at("dense.weight"), "2x260100");
}

}  // namespace
}  // namespace regatta
