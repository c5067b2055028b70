// Shares of ranks planned anew while a run goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/share_watch.h"
#include "train/ranks.h"

namespace regatta {

class NewShares {
 public:
  // `job` and `executor` are replaced in share_anew(); `say` is given a line for people, on the
  // first rank.
  NewShares(Ranks& ranks, TrainJob& job, std::optional<Executor>& executor, RankRequest request,
            std::function<void(const std::string&)> say);

  // On the first rank: see TrainGoal::wants_new_shares.
  bool wanted(const std::vector<double>& computed_s);
  // On all ranks, with nothing in flight: the first rank makes a plan with other shares, each rank
  // its executor anew, and weights and optimizer state are carried over in memory. False: a rank's
  // memory does not hold its new share, so shares stay as they are from then on.
  bool share_anew(std::int64_t step);

 private:
  std::string plan_text() const;
  std::string line(std::int64_t step, const std::vector<std::int64_t>& shares) const;

  Ranks& ranks_;
  TrainJob& job_;
  std::optional<Executor>& executor_;
  RankRequest request_;
  std::function<void(const std::string&)> say_;
  ShareWatch watch_;
  bool over_ = false;  // shares stay
};

}  // namespace regatta
