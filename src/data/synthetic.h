// Images made up on the fly from (seed, index): any size and number of classes, no memory, no
// network. Each class is a smooth pattern; each sample shifts it, blends it with a pattern of its
// own, changes its contrast and adds noise, so that a network has something to learn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"

namespace regatta {

struct SyntheticSize {
  Shape sample;  // C x H x W
  int classes = 0;
  std::int64_t train_count = 0, test_count = 0;
  bool any_size = false;  // as DatasetInfo has it: a user has not asked for this very sample
};

// "3x32x32/10@50000": the test split gets a fifth. Throws InputError that quotes `text`.
SyntheticSize parse_synthetic(const std::string& text);

// `spec` is what info() repeats. Classes take turns: sample i has label i mod classes.
std::shared_ptr<const Dataset> synthetic_dataset(const std::string& spec, const SyntheticSize& size,
                                                 Split split, std::uint64_t seed);

}  // namespace regatta
