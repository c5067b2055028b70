// What the executor loads: batches of a data set in the form the recipe wants.
#pragma once

#include <memory>
#include <vector>

#include "data/dataset.h"
#include "exec/executor.h"
#include "plan/recipe.h"

namespace regatta {

// Samples in the order in which an epoch visits them.
struct Visits {
  std::shared_ptr<const Dataset> data;
  std::shared_ptr<const std::vector<std::int64_t>> order;
};

// `count` samples from `first` on, as they are stored or, if `dtype` says so, as floats.
StepInput test_batch(const Visits& visits, std::int64_t first, std::int64_t count, Dtype dtype);

// The same for training, with what the recipe does to samples and targets. `number` counts the
// micro-batches of the whole run from 0.
StepInput train_batch(const Visits& visits, std::int64_t first, std::int64_t count,
                      const Recipe& recipe, std::uint64_t number);

}  // namespace regatta
