#include "tune/trial_budget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace regatta {

Seconds longest_trials(std::optional<std::int64_t> steps, Seconds step) {
  constexpr Seconds longest{15};
  constexpr double of_the_run = 0.03;
  if (!steps) return longest;
  return std::min(longest, of_the_run * static_cast<double>(*steps) * step);
}

void TrialNote::on_turn() {
  const Seconds passed = std::chrono::steady_clock::now() - begin_;
  char text[80];
  std::snprintf(text, sizeof text, "trying plans out: %.0f s of at most %.0f s", passed.count(),
                std::ceil(longest_.count()));
  progress_.note(text);
}

}  // namespace regatta
