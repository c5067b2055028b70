// How far tensors are from the truth, all values together.
#pragma once

#include <cmath>
#include <vector>

#include "support/reference_run.h"

namespace regatta {

template <class T>
std::vector<double> joined(const Tensors<T>& tensors) {
  std::vector<double> all;
  for (const auto& tensor : tensors) all.insert(all.end(), tensor.begin(), tensor.end());
  return all;
}

inline double distance(const std::vector<double>& a, const std::vector<double>& truth) {
  double apart = 0, length = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    apart += (a[i] - truth[i]) * (a[i] - truth[i]);
    length += truth[i] * truth[i];
  }
  return std::sqrt(apart / length);
}

}  // namespace regatta
