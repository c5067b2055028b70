#include <gtest/gtest.h>

#include "models/models.h"
#include "models/shapes_by_name.h"

namespace regatta {
namespace {

using Shapes = std::map<std::string, std::string>;

TEST(LeNet5, HasTwoConvolutionsAndThreeDenseLayers) {
  const Graph graph = build_model("lenet5");
  EXPECT_EQ(shapes_by_name(graph), (Shapes{{"conv1.weight", "6x1x5x5"},
                                           {"conv1.bias", "6"},
                                           {"conv2.weight", "16x6x5x5"},
                                           {"conv2.bias", "16"},
                                           {"fc1.weight", "120x400"},
                                           {"fc1.bias", "120"},
                                           {"fc2.weight", "84x120"},
                                           {"fc2.bias", "84"},
                                           {"fc3.weight", "10x84"},
                                           {"fc3.bias", "10"}}));
  EXPECT_EQ(summarise(graph).parameters, 61'706);
  EXPECT_EQ(summarise(graph).multiply_adds, 416'520);
}

TEST(LeNet5, FitsOtherImagesAndClasses) {
  const Graph graph = build_model("lenet5", {.input = Shape{3, 32, 32}, .classes = 100});
  EXPECT_EQ(shapes_by_name(graph).at("conv1.weight"), "6x3x5x5");
  EXPECT_EQ(shapes_by_name(graph).at("fc1.weight"), "120x576");
  EXPECT_EQ(graph.classes(), 100);
}

}  // namespace
}  // namespace regatta
