// models/: the architectures, one file for each family, built with ops/builder.h, and networks read
// from files (JSON, ONNX). Parameters carry torchvision's names and shapes, so that its checkpoints
// can be read. To add a model: one file, one line below, one line in models.cpp, one test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace regatta {

// One architecture, and the data it was made for.
struct ModelDef {
  std::string_view name;
  Shape input;
  std::int64_t classes;
  Graph (*build)(const Shape& input, std::int64_t classes);
};

extern const ModelDef alexnet_model;
extern const ModelDef densenet121_model;
extern const ModelDef inception_v3_model;
extern const ModelDef lenet5_model;
extern const ModelDef mobilenet_v2_model;
extern const ModelDef resnet101_model;
extern const ModelDef resnet18_model;
extern const ModelDef resnet20_model;
extern const ModelDef resnet34_model;
extern const ModelDef resnet50_model;
extern const ModelDef resnet56_model;
extern const ModelDef squeezenet1_1_model;
extern const ModelDef tiny_model;
extern const ModelDef vgg11_model;
extern const ModelDef vgg16_model;

// What to change of a model; what is left out stays as the model has it.
struct ModelOptions {
  std::optional<Shape> input = {};
  std::optional<std::int64_t> classes = {};
};

std::vector<std::string> model_names();

// Throws InputError: an unknown name with the nearest one, an input too small with the layer that
// it does not fit and the smallest that does.
Graph build_model(std::string_view name, const ModelOptions& options = {});

struct ModelSummary {
  std::int64_t parameters = 0;        // trained numbers
  std::int64_t multiply_adds = 0;     // of convolutions and dense layers, forward, per image
  std::int64_t activation_bytes = 0;  // kept between forward and backward, in float, per image
  std::int64_t meeting_points = 0;    // operators that need the whole batch in training
};

// Describes the graph as it stands: summarise the fused one to learn what training keeps.
ModelSummary summarise(const Graph& graph);

}  // namespace regatta
