// How long plans may be tried out before a run, and what is said meanwhile.
#pragma once

#include <chrono>
#include <iostream>
#include <optional>

#include "base/ids.h"
#include "base/progress.h"

namespace regatta {

// For a run of so many steps that take `step` each; without a number of steps, for any run.
Seconds longest_trials(std::optional<std::int64_t> steps, Seconds step);

// Says on standard error that plans are being tried out, so that nobody takes it for a hang.
class TrialNote {
 public:
  explicit TrialNote(Seconds longest) : longest_(longest), progress_(std::cerr) {}
  void on_turn();

 private:
  Seconds longest_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Progress progress_;
};

}  // namespace regatta
