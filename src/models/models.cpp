#include "models/models.h"

#include "base/error.h"
#include "base/files.h"

namespace regatta {
namespace {

constexpr const ModelDef* all_models[] = {&tiny_model, &lenet5_model, &resnet18_model,
                                          &resnet50_model};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelDef* model : all_models) names.emplace_back(model->name);
  return names;
}

Graph build_model(std::string_view name, const ModelOptions& options) {
  for (const ModelDef* model : all_models) {
    if (model->name != name) continue;
    const std::int64_t classes = options.classes.value_or(model->classes);
    if (classes < 2)
      throw InputError("model '" + std::string(name) + "': " + std::to_string(classes) +
                       " classes leave nothing to tell apart; use 2 or more");
    return model->build(options.input.value_or(model->input), classes);
  }
  std::string known;
  for (const std::string& other : model_names()) known += (known.empty() ? "" : ", ") + other;
  throw InputError("model '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, model_names()) + ": there are " + known);
}

}  // namespace regatta
