#include "models/models.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "graph/op.h"

namespace regatta {
namespace {

constexpr const ModelDef* all_models[] = {
    &tiny_model,         &lenet5_model,      &alexnet_model,      &vgg11_model,
    &vgg16_model,        &resnet18_model,    &resnet34_model,     &resnet50_model,
    &resnet101_model,    &resnet20_model,    &resnet56_model,     &inception_v3_model,
    &mobilenet_v2_model, &densenet121_model, &squeezenet1_1_model};

bool takes(const ModelDef& model, const Shape& input, std::int64_t classes) {
  try {
    model.build(input, classes);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// Says which images a model takes, for one that it refuses; nothing if size is not the matter.
std::string smallest_image(const ModelDef& model, const Shape& refused, std::int64_t classes) {
  if (refused.rank() != 3) return "";
  const auto square = [&](std::int64_t size) { return Shape{refused.channels(), size, size}; };
  std::int64_t no = 0, yes = model.input.height();
  if (!takes(model, square(yes), classes)) return "";
  while (yes - no > 1) {
    const std::int64_t middle = (no + yes) / 2;
    (takes(model, square(middle), classes) ? yes : no) = middle;
  }
  if (refused.height() >= yes && refused.width() >= yes) return "";
  return "; the smallest image for model '" + std::string(model.name) + "' is " +
         square(yes).text();
}

Graph build(const ModelDef& model, const Shape& input, std::int64_t classes) {
  try {
    return model.build(input, classes);
  } catch (const InputError& error) {
    throw InputError(error.what() + smallest_image(model, input, classes));
  }
}

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
    return build(*model, options.input.value_or(model->input), classes);
  }
  std::string known;
  for (const std::string& other : model_names()) known += (known.empty() ? "" : ", ") + other;
  throw InputError("model '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, model_names()) + ": there are " + known);
}

}  // namespace regatta
