// Whether other shares than those of the plan would be faster, as ranks really take for theirs.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "plan/shares.h"

namespace regatta {

// Fed with every step's times. A passing disturbance is no reason for other shares: only when they
// would have been worth it in every one of `patience()` consecutive steps are they.
class ShareWatch {
 public:
  // `granule` as in balanced_shares. With `chunks` shares are whole ones of these, which follow
  // each other: the chunks of a deterministic plan.
  ShareWatch(std::vector<std::int64_t> shares, std::int64_t granule,
             std::vector<std::int64_t> chunks = {});

  // How long each rank's workers computed in a step of the full batch, by rank. 0: not known, and
  // the step does not count. True if other shares are worth it: then better() has them.
  bool note(std::span<const double> seconds);
  // By the medians of the steps that counted.
  std::vector<std::int64_t> better() const;
  // Medians of those steps, by rank, in seconds.
  std::vector<double> typical() const;

  const std::vector<std::int64_t>& shares() const { return shares_; }
  int patience() const { return patience_; }
  // From now on the ranks have these shares. The next ones take twice as many steps to be worth it:
  // if times do not follow shares as expected, shares change ever more rarely.
  void use(std::vector<std::int64_t> shares);

 private:
  std::vector<Participant> participants(const std::vector<double>& seconds) const;
  std::vector<std::int64_t> best_for(const std::vector<double>& seconds) const;
  bool worth_it(const std::vector<double>& seconds) const;

  std::vector<std::int64_t> shares_;
  std::int64_t batch_ = 0, granule_;
  std::vector<std::int64_t> chunks_;
  int patience_;
  std::deque<std::vector<double>> steps_;  // consecutive ones for which others were worth it
  std::vector<TimedShare> before_;         // by rank: what its last other share took
};

}  // namespace regatta
