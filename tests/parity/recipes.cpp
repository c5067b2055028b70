#include "parity/recipes.h"

#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "parity/formula.h"
#include "support/places.h"
#include "train/masking.h"

namespace regatta {
namespace {

void judge(Failures& failures, const std::string& what, double distance, double allowed) {
  if (distance <= allowed) return;
  failures.push_back(what + ": " + std::to_string(distance) + " from PyTorch's float64, allowed " +
                     std::to_string(allowed));
}

// The images of the formula, eight of them, one batch or one step an epoch.
Recipe base_recipe() {
  Recipe recipe;
  recipe.model = "lenet5";
  recipe.input = {1, 28, 28};
  recipe.classes = 10;
  recipe.data = "formula";
  recipe.sample_dtype = Dtype::f32;
  recipe.normalisation = {1.0f, {0.0f}, {1.0f}};
  recipe.batch = 8;
  recipe.seed = 8;
  recipe.shuffle = false;
  return recipe;
}

}  // namespace

Json parity_file(const std::string& name) {
  return read_json(test_files() / "tests/parity/data" / name);
}

std::vector<std::string> parity_recipes() {
  std::vector<std::string> names;
  const Json all = parity_file("recipes.json");
  for (const auto& [name, truth] : all.items()) names.push_back(name);
  return names;
}

RecipeFixture::RecipeFixture(std::string name)
    : name_(std::move(name)), truth_(parity_file("recipes.json").at(name_)) {
  Json json = base_recipe().to_json();
  json.update(truth_.at("recipe"));
  recipe_ = recipe_from_json(json);
}

std::optional<Mask> RecipeFixture::mask(const Graph& graph) const {
  if (!truth_.at("recipe").contains("keep")) return std::nullopt;
  const float keep = truth_["recipe"]["keep"];
  Mask mask = whole_mask(graph);
  for (MaskTensor& tensor : mask.tensors) {
    const std::uint64_t stream = stream_of("mask " + tensor.name);
    for (std::int64_t i = 0; i < tensor.count(); ++i)
      tensor.set(i, random_uniform(recipe_.seed, stream, static_cast<std::uint64_t>(i)) < keep);
  }
  return mask;
}

Failures RecipeFixture::compare_losses(const std::vector<double>& losses,
                                       const Yardstick& by) const {
  Failures failures;
  const auto truth = truth_.at("losses").get<std::vector<double>>();
  const auto distances = truth_.at("losses_distance").get<std::vector<double>>();
  if (losses.size() != truth.size())
    return {name_ + ": " + std::to_string(losses.size()) + " losses"};
  double float32_distance = 0;
  for (std::size_t step = 0; step < truth.size(); ++step) {
    float32_distance = std::max(float32_distance, distances[step]);
    judge(failures, name_ + ": loss of step " + std::to_string(step + 1),
          std::abs(losses[step] - truth[step]) / std::abs(truth[step]),
          by.allowed(float32_distance));
  }
  return failures;
}

Failures RecipeFixture::compare(const std::string& what, const Graph& graph,
                                const Tensors<float>& tensors, const Yardstick& by) const {
  Failures failures;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const std::string& name = graph.parameters()[i].name;
    const Json& truth = truth_.at(what).at(name);
    const auto expected = truth.at("projections").get<Projections>();
    const Projections found = projections(name, std::span<const float>(tensors[i]));
    double squared = 0;
    for (std::size_t k = 0; k < found.size(); ++k)
      squared += std::pow(found[k] - expected[k], 2) / static_cast<double>(found.size());
    const double scale = truth.at("scale");
    difference += squared;
    norm += scale * scale;
    judge(failures, name_ + ": " + what + " " + name, std::sqrt(squared) / scale,
          by.single * by.allowed(truth.at("float32_distance")));
  }
  judge(failures, name_ + ": all " + what, std::sqrt(difference / norm),
        by.allowed(truth_.at(what + "_distance")));
  return failures;
}

}  // namespace regatta
