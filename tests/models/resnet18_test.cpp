#include <gtest/gtest.h>

#include "models/models.h"
#include "models/shapes_by_name.h"

namespace regatta {
namespace {

TEST(ResNet18, HasTorchvisionsNamesAndShapes) {
  const auto shapes = shapes_by_name(build_model("resnet18"));
  EXPECT_EQ(shapes.size(), 122u);
  EXPECT_EQ(shapes.at("conv1.weight"), "64x3x7x7");
  EXPECT_EQ(shapes.at("bn1.running_var"), "64");
  EXPECT_EQ(shapes.at("layer1.0.conv1.weight"), "64x64x3x3");
  EXPECT_FALSE(shapes.contains("layer1.0.downsample.0.weight"));
  EXPECT_EQ(shapes.at("layer2.0.downsample.0.weight"), "128x64x1x1");
  EXPECT_EQ(shapes.at("layer2.0.downsample.1.num_batches_tracked"), "1");
  EXPECT_EQ(shapes.at("layer4.1.bn2.weight"), "512");
  EXPECT_EQ(shapes.at("fc.weight"), "1000x512");
  EXPECT_FALSE(shapes.contains("conv1.bias"));
}

TEST(ResNet18, Counts) {
  const ModelSummary summary = summarise(build_model("resnet18"));
  EXPECT_EQ(summary.parameters, 11'689'512);
  EXPECT_EQ(summary.multiply_adds, 1'814'073'344);
  EXPECT_EQ(summary.meeting_points, 20);
}

TEST(ResNet18, KeepsItsStemForSmallImages) {
  const Graph graph = build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10});
  EXPECT_EQ(shapes_by_name(graph).at("conv1.weight"), "64x3x7x7");
  EXPECT_EQ(shapes_by_name(graph).at("fc.weight"), "10x512");
  EXPECT_EQ(graph.node(NodeId{1}).shape, (Shape{64, 16, 16}));
}

}  // namespace
}  // namespace regatta
