// ResNet-18: two 3x3 convolutions a block.
#include "models/models.h"
#include "models/resnet.h"

namespace regatta {
namespace {

Graph build(const Shape& input, std::int64_t classes) {
  return build_resnet({.name = "resnet18", .bottleneck = false, .blocks = {2, 2, 2, 2}}, input,
                      classes);
}

}  // namespace

const ModelDef resnet18_model{
    .name = "resnet18", .input = {3, 224, 224}, .classes = 1000, .build = build};

}  // namespace regatta
