// Advice of regatta doctor that needs more than the trace: the step time that this machine's
// profile predicts for the run's plan, and faster plans found by playing or simulating others.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "trace/doctor.h"

namespace regatta::app {

struct SecondOpinion {
  // Seconds of a step of this plan by the costs stored of this machine, if it ran here and most of
  // them are known.
  std::optional<double> predicted_step_s = {};
  // Plans that would be faster, the best first. Their gains are predicted, not upper limits.
  std::vector<trace::Finding> findings = {};
};

// `run` is a run folder, or anything else: then there is nothing to say. `wall_s`: what was
// recorded, for the seconds that a gain is.
SecondOpinion second_opinion(const std::filesystem::path& run, double wall_s);

}  // namespace regatta::app
