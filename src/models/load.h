// A model by what a user calls it: a name of the zoo, or a file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/models.h"
#include "models/onnx.h"

namespace regatta {

struct LoadedModel {
  Graph graph;                                // not fused
  std::optional<Weights> weights = {};        // if the file holds them
  std::vector<std::string> class_names = {};  // of the outputs, if the file tells
};

// Whether `model` means a file rather than a name: it ends with .json or .onnx, or is there.
bool is_model_file(const std::string& model);

// A network of JSON or ONNX; of `options`, the input stands in for the file's, and a number of
// classes must be the file's. Throws InputError that names the file and the layer.
LoadedModel read_model_file(const std::filesystem::path& file, const ModelOptions& options = {});

// By name or file.
LoadedModel load_model(const std::string& model, const ModelOptions& options = {});

}  // namespace regatta
