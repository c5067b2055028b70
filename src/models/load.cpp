#include "models/load.h"

#include "base/error.h"
#include "base/files.h"
#include "models/network_json.h"
#include "models/onnx_file.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

LoadedModel parse(const std::string& bytes, const fs::path& file,
                  const std::optional<Shape>& input) {
  if (file.extension() != ".onnx") return {graph_from_json(bytes, input)};
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  OnnxModel model = read_onnx_file(std::as_bytes(std::span(bytes)), folder, input);
  return {std::move(model.graph), std::move(model.weights), std::move(model.class_names)};
}

}  // namespace

bool is_model_file(const std::string& model) {
  std::error_code ignored;
  return model.ends_with(".json") || model.ends_with(".onnx") ||
         fs::is_regular_file(model, ignored);
}

LoadedModel read_model_file(const fs::path& file, const ModelOptions& options) {
  const std::string bytes = read_file(file);
  try {
    LoadedModel model = parse(bytes, file, options.input);
    const std::int64_t classes = model.graph.classes();
    if (options.classes && *options.classes != classes)
      throw InputError("its last layer gives " + std::to_string(classes) + " classes, not " +
                       std::to_string(*options.classes) + "; change it in the file");
    return model;
  } catch (const InputError& error) {
    throw InputError("'" + file.string() + "': " + error.what());
  }
}

LoadedModel load_model(const std::string& model, const ModelOptions& options) {
  if (is_model_file(model)) return read_model_file(model, options);
  return {build_model(model, options)};
}

}  // namespace regatta
