// Statistics that a few wild values cannot move.
#pragma once

#include <span>
#include <vector>

namespace regatta {

// What a row of timings says, once those that were disturbed are left out.
struct Typical {
  double value = 0;   // the median of those that agree
  double spread = 0;  // of a single one around it, as a standard deviation
  int count = 0;      // that agree
  double split = 0;   // how far odd and even ones differ, as a share: a held-out error

  // Half the 95% interval of `value`, as a share of it.
  double error() const;
};

// Typical::error() of a single timing.
inline constexpr double error_of_one_timing = 0.25;

// On a crowded machine a single timing may take any time. One so many times as long as all else
// says is not believed.
inline constexpr double believable = 10;

// `values` in the order they were taken. More than half of them may be disturbed, in a row or one
// by one: by a neighbour that computes, a machine that sleeps, or data that come from afar.
Typical typical(std::span<const double> values);

double median(std::vector<double> values);  // 0 of none

}  // namespace regatta
