// Trying plans out before a run: what a few real steps of a candidate took counts for more than any
// prediction. The profile keeps it under a signature of its own, so that the next run need not try
// again.
#pragma once

#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "profile/profile.h"
#include "train/job.h"
#include "tune/choose.h"

namespace regatta {

// The profile's name for a whole step: what it computes and how the plan cuts it. Learning rates,
// seeds and schedules do not matter.
std::string step_signature(const Graph& graph, const Recipe& recipe, const Plan& plan);

// Fills in what earlier trials of the candidates took, as far as the profile knows it.
void apply_stored_trials(Choice& choice, const Graph& graph, const Recipe& recipe,
                         const Profile& profile);

// The candidates worth trying: the best of each kind, then the others by predicted time. Of those
// that differ in lanes, buckets or sizes of chunks alone only the best; none that is predicted to
// be slower than the best by more than predictions err.
std::vector<std::size_t> finalists(const Choice& choice, std::size_t most);

// Seconds that trials may take in all: for a run of so many steps that take `step` each; without a
// number of steps, for any run.
Seconds longest_trials(std::optional<std::int64_t> steps, Seconds step);

// Finds the fastest of the finalists (contest.h), and says so on standard error. What was seen is
// for the profile: apply_stored_trials() and rank_by_trials() then put the fastest first. Returns
// nothing where there is nothing to decide or the budget is too small. No executor may be alive.
std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget);

// A line for each doubtful candidate, for people to read.
std::string doubts(const Choice& choice);

// If at least two were tried, the fastest of them is put first, or a simpler one that is about as
// fast (prefer_simplest); those that were not tried go to the end. A doubtful one comes after all
// others that were tried, until another trial or new costs change that.
void rank_by_trials(Choice& choice);

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
