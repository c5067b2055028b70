// What PyTorch does by a recipe in ten steps of LeNet-5: scripts/recipe-fixtures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/mask.h"
#include "parity/fixtures.h"
#include "plan/recipe.h"

namespace regatta {

// A file of tests/parity/data.
Json parity_file(const std::string& name);

std::vector<std::string> parity_recipes();

class RecipeFixture {
 public:
  explicit RecipeFixture(std::string name);

  const Recipe& recipe() const { return recipe_; }
  std::int64_t steps() const { return std::ssize(truth_.at("losses")); }
  bool averages() const { return truth_.contains("average"); }
  // The formula's mask; none if the recipe has no part of weights to keep.
  std::optional<Mask> mask(const Graph& graph) const;

  Failures compare_losses(const std::vector<double>& losses, const Yardstick& by) const;
  // `what` is "parameters" or "average", by ParameterId, after the last step.
  Failures compare(const std::string& what, const Graph& graph, const Tensors<float>& tensors,
                   const Yardstick& by) const;

 private:
  std::string name_;
  Json truth_;
  Recipe recipe_;
};

}  // namespace regatta
