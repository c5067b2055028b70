// Trying plans out before a run, and how long that may take.
#pragma once

#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "profile/profile.h"
#include "train/job.h"
#include "tune/choose.h"

namespace regatta {

// Seconds that trials may take in all: for a run of so many steps that take `step` each; without a
// number of steps, for any run.
Seconds longest_trials(std::optional<std::int64_t> steps, Seconds step);

// Finds the fastest of the most promising candidates of a choice (contest.h). What was seen is for
// the profile: apply_stored_trials() and rank_by_trials() put the fastest first, and the next run
// need not try again. Returns nothing where there is nothing to decide or the budget is too small.
// `on_trial` is called before each trial. No executor may be alive.
std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget,
                                        const std::function<void()>& on_trial = {});

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
