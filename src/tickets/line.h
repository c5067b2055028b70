// The straight line between the weights of two runs.
#pragma once

#include <vector>

#include "data/safetensors.h"

namespace regatta::tickets {

// (1 - share) of `from` and `share` of `to`, number by number; counts are those of `from`. Throws
// InputError if the files do not hold the same tensors.
TensorFile between(const TensorFile& from, const TensorFile& to, double share);

// How much higher the error climbs on the way than the mean of both ends; `errors` are those of
// evenly spaced points from one end to the other.
double barrier(const std::vector<double>& errors);

}  // namespace regatta::tickets
