// What the residual networks (He et al. 2015) share, in torchvision's variant: a block's stride
// sits on its 3x3 convolution, and the stem is the same for any input size.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace regatta {

struct ResNet {
  std::string name;
  bool bottleneck = false;      // 1x1, 3x3, 1x1 convolutions a block instead of 3x3, 3x3
  std::array<int, 4> blocks{};  // in each of the four layers
};

Graph build_resnet(const ResNet& resnet, const Shape& input, std::int64_t classes);

}  // namespace regatta
