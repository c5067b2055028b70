// Plans the ranks' shares of the batch anew, during a run.
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
  // share_anew() changes `job` and replaces `executor`. On the first rank `say` gets a line for the
  // user: the new shares, or why shares stay.
  NewShares(Ranks& ranks, TrainJob& job, std::optional<Executor>& executor, RankRequest request,
            std::function<void(const std::string&)> say);

  // Called on the first rank only: see TrainGoal::wants_new_shares.
  bool wanted(const std::vector<double>& computed_s);
  // Called on all ranks after `step` steps, with no step in flight. The first rank makes a plan
  // with other shares; each rank makes a new executor and copies weights and optimizer state into
  // it. False: the plan cannot be made, or does not fit into a rank's memory; shares then stay for
  // the rest of the run.
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
  bool over_ = false;  // shares stay for the rest of the run
};

}  // namespace regatta
