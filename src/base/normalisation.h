// How stored samples become numbers.
#pragma once

#include <vector>

namespace regatta {

// What the network sees of a stored x in channel c: (x * scale - mean[c]) / deviation[c].
struct Normalisation {
  float scale = 1.0f;
  std::vector<float> mean, deviation;
};

}  // namespace regatta
