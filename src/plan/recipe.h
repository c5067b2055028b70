// plan/: the recipe (what is computed), the plan (when and where), how a plan is made from a recipe
// and a machine, and the checks a plan must pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/json.h"
#include "base/normalisation.h"
#include "base/optimizer.h"
#include "base/precision.h"
#include "base/shape.h"
#include "graph/graph.h"
#include "plan/learning_rate.h"

namespace regatta {

// Everything that decides the numbers of a training run. Two runs of one recipe compute the same,
// whatever their plans.
struct Recipe {
  std::string model;
  Shape input;
  std::int64_t classes = 0;
  std::string data;         // where it is
  Json data_identity = {};  // what it is, wherever it lies (Dataset::identity); null if unknown
  Dtype sample_dtype = Dtype::u8;  // as stored
  Normalisation normalisation;
  std::int64_t batch = 64;
  std::int64_t accumulate = 1;  // batches whose gradients make one step
  OptimizerSettings optimizer;
  Schedule schedule;
  double label_smoothing = 0;
  double mixup = 0;                    // alpha of Beta(alpha, alpha); 0: none
  std::optional<double> dropout = {};  // of all the model's dropout layers; default: the model's
  std::string augment;                 // as data/augment.h writes it
  // Batch norm takes its statistics over groups of so many consecutive samples of the batch, the
  // last of which may be short; 0: over the whole batch.
  std::int64_t batch_norm_group = 0;
  Precision precision = Precision::fp32;
  // The precision to which gradients are rounded whenever one rank sends them to another: fp32 (not
  // at all) or bf16. A run of a single process sends none.
  Precision wire_precision = Precision::fp32;
  std::uint64_t seed = 1;
  bool shuffle = true;
  std::string mask;  // fingerprint of the mask of weights; empty: none

  Json to_json() const;
  std::string fingerprint() const;  // of to_json(); data that moved leaves it as it was

  std::int64_t samples_per_step() const { return batch * accumulate; }
  // The type of samples as the network's input gets them: blended ones are floats.
  Dtype loaded_dtype() const { return mixup > 0 ? Dtype::f32 : sample_dtype; }
};

Recipe recipe_from_json(const Json& json);  // throws InputError that names the key

// Recipe::batch_norm_group of "whole" or "group:G"; throws InputError that begins with `flag`.
std::int64_t batch_norm_group_named(const std::string& flag, const std::string& text);

// Recipe::wire_precision of "fp32" or "bf16"; throws InputError.
Precision wire_precision_named(const std::string& text);

// Throws InputError if batch norm would have a group of samples with fewer than two values per
// channel, in some batch of an epoch of `samples` (0: unknown; then full batches alone are looked
// at), or if the recipe asks for groups and the graph has no batch norm.
void require_groups(const Recipe& recipe, const Graph& graph, std::int64_t samples);

}  // namespace regatta
