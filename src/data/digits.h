// Handwriting-like digits drawn on the fly: 28x28 like MNIST, for when there is no network to fetch
// it. Each sample moves, turns, slants, bends and thickens the strokes of its digit and adds noise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

std::vector<std::string> digit_names();  // "0" to "9", as MNIST's classes

// 60,000 samples to train and 10,000 to test, as a function of (seed, index).
std::shared_ptr<const Dataset> digits_dataset(const std::string& spec, Split split,
                                              std::uint64_t seed);

}  // namespace regatta
