// Decides from the measured times of ranks whether other shares of the batch would be faster.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "plan/shares.h"

namespace regatta {

// Other shares are proposed only if they would have shortened each of `patience()` consecutive
// steps by enough (share_watch.cpp: worthwhile), so that a short disturbance changes nothing.
class ShareWatch {
 public:
  // `shares`: samples by rank. `granule`: see balanced_shares. `chunks`: the chunk sizes of a
  // deterministic plan, in samples and in batch order; each rank's share is then a run of whole
  // chunks.
  ShareWatch(std::vector<std::int64_t> shares, std::int64_t granule,
             std::vector<std::int64_t> chunks = {});

  // Adds one step of the full batch: how many seconds each rank's workers computed, by rank. A step
  // in which any of them is 0 (not known) is ignored. True if other shares are worth it: better()
  // returns them.
  bool note(std::span<const double> seconds);
  // The best shares for typical(), in samples by rank.
  std::vector<std::int64_t> better() const;
  // By rank: the median of the seconds computed, over the latest consecutive steps in which other
  // shares were worth it.
  std::vector<double> typical() const;

  const std::vector<std::int64_t>& shares() const { return shares_; }
  int patience() const { return patience_; }
  // From now on the ranks have these shares. Doubles patience(), so that shares change more and
  // more rarely where times do not follow shares as expected.
  void use(std::vector<std::int64_t> shares);

 private:
  std::vector<Participant> participants(const std::vector<double>& seconds) const;
  std::vector<std::int64_t> best_for(const std::vector<double>& seconds) const;
  bool worth_it(const std::vector<double>& seconds) const;

  std::vector<std::int64_t> shares_;
  std::int64_t batch_ = 0, granule_;
  std::vector<std::int64_t> chunks_;
  int patience_;
  // Seconds by rank, of the latest consecutive steps in which other shares were worth it.
  std::deque<std::vector<double>> steps_;
  std::vector<TimedShare> before_;  // by rank: its share before the last use(), and typical() then
};

}  // namespace regatta
