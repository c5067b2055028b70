#include <gtest/gtest.h>

#include "models/models.h"
#include "models/shapes_by_name.h"

namespace regatta {
namespace {

TEST(ResNet50, HasTorchvisionsNamesAndShapes) {
  const auto shapes = shapes_by_name(build_model("resnet50"));
  EXPECT_EQ(shapes.size(), 320u);
  EXPECT_EQ(shapes.at("layer1.0.conv1.weight"), "64x64x1x1");
  EXPECT_EQ(shapes.at("layer1.0.downsample.0.weight"), "256x64x1x1");
  EXPECT_EQ(shapes.at("layer2.0.conv2.weight"), "128x128x3x3");
  EXPECT_EQ(shapes.at("layer3.5.conv3.weight"), "1024x256x1x1");
  EXPECT_EQ(shapes.at("layer4.2.bn3.running_mean"), "2048");
  EXPECT_EQ(shapes.at("fc.weight"), "1000x2048");
}

TEST(ResNet50, Counts) {
  const ModelSummary summary = summarise(build_model("resnet50"));
  EXPECT_EQ(summary.parameters, 25'557'032);
  EXPECT_EQ(summary.multiply_adds, 4'089'184'256);
  EXPECT_EQ(summary.meeting_points, 53);
}

// torchvision's variant: halving on the 3x3 convolution, not on the 1x1 before it.
TEST(ResNet50, ABlocksStrideIsOnItsMiddleConvolution) {
  const Graph graph = build_model("resnet50");
  for (const Node& node : graph.nodes()) {
    if (node.name == "layer2.0.conv1") {
      EXPECT_EQ(node.shape, (Shape{128, 56, 56}));
    }
    if (node.name == "layer2.0.conv2") {
      EXPECT_EQ(node.shape, (Shape{128, 28, 28}));
    }
  }
}

}  // namespace
}  // namespace regatta
