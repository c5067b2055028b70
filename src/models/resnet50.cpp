// ResNet-50: bottleneck blocks.
#include "models/models.h"
#include "models/resnet.h"

namespace regatta {
namespace {

Graph build(const Shape& input, std::int64_t classes) {
  return build_resnet({.name = "resnet50", .bottleneck = true, .blocks = {3, 4, 6, 3}}, input,
                      classes);
}

}  // namespace

const ModelDef resnet50_model{
    .name = "resnet50", .input = {3, 224, 224}, .classes = 1000, .build = build};

}  // namespace regatta
