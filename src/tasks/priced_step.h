// The training step of one plan with all that is asked of it before it runs: where everything lies,
// its task list, and what its tasks are expected to cost.
#pragma once

#include <memory>
#include <vector>

#include "tasks/meetings.h"
#include "tasks/play.h"

namespace regatta {

// Not to be moved: the costs refer to the blueprint.
class PricedStep {
 public:
  PricedStep(const Graph& graph, const Recipe& recipe, const Plan& plan, const CostsFor& costs);
  // Costs by a profile; without one all of them are guessed.
  PricedStep(const Graph& graph, const Recipe& recipe, const Plan& plan,
             const std::shared_ptr<const Profile>& profile);
  PricedStep(const PricedStep&) = delete;
  PricedStep& operator=(const PricedStep&) = delete;

  const Blueprint& blueprint() const { return blueprint_; }
  const Plan& plan() const { return blueprint_.plan; }
  const TaskList& list() const { return list_; }
  const TaskCosts& costs() const { return *costs_; }

  // Changes the plan and the list: samples and losses have a buffer for each step in flight.
  void set_steps_in_flight(int steps);

  Played play() const { return regatta::play(blueprint_, list_, *costs_); }
  double least_seconds() const { return regatta::least_seconds(blueprint_, list_, *costs_); }
  std::vector<Meeting> meetings() const { return regatta::meetings(blueprint_, list_, *costs_); }
  MeasuredShares measured_shares(int busy) const { return costs_->measured_shares(list_, busy); }
  // For Placement::fixed: by worker, its tasks in the order that a play gives.
  std::vector<std::vector<std::uint32_t>> order() const;

 private:
  Blueprint blueprint_;
  TaskList list_;
  std::unique_ptr<TaskCosts> costs_;
};

// Costs by a profile, of tasks that load samples of `data`, as the recipe writes it.
CostsFor costs_by(std::shared_ptr<const Profile> profile, std::string data);

}  // namespace regatta
