// plan/: the recipe (what is computed), the plan (when and where), how a plan is made from a recipe
// and a machine, and the checks a plan must pass.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/json.h"
#include "base/normalisation.h"
#include "base/optimizer.h"
#include "base/precision.h"
#include "base/shape.h"

namespace regatta {

// Everything that decides the numbers of a training run. Two runs of one recipe compute the same,
// whatever their plans.
struct Recipe {
  std::string model;
  Shape input;
  std::int64_t classes = 0;
  std::string data;
  Dtype sample_dtype = Dtype::u8;
  Normalisation normalisation;
  std::int64_t batch = 64;
  OptimizerSettings optimizer;
  Precision precision = Precision::fp32;
  std::uint64_t seed = 1;
  bool shuffle = true;

  Json to_json() const;
  std::string fingerprint() const;  // of to_json()
};

Recipe recipe_from_json(const Json& json);  // throws InputError that names the key

}  // namespace regatta
