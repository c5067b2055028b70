// The task list of a pipeline: every stage's group computes its segments for each chunk in turn,
// values and gradients that cross a border between stages are read by the other group's tasks.
#pragma once

#include <memory>
#include <vector>

#include "tasks/costs.h"
#include "tasks/footprint.h"

namespace regatta {

// By segment: the group that owns it, counted over all nodes. The plan has stages and is sound.
std::vector<GroupId> owners_of_segments(const Plan& plan);

// By group: where everything would lie if it computed all segments. Phases are not gathered: a
// chunk's forward must not wait for its backward.
std::vector<Blueprint> stage_blueprints(const Graph& graph, const Plan& plan,
                                        const Numbers& numbers);

// One training step of all stages. Buffers and chunks are numbered as in the stages' own lists, so
// a chunk has one number in all of them. Targets are not sent along: they are few bytes.
TaskList lower_stages(const Plan& plan, const std::vector<Blueprint>& stages);

// By task, larger is sooner: fill and drain. A stage goes forward with all chunks, each through all
// its segments, before it goes back with the first; reductions and updates come last.
std::vector<double> fill_drain_ranks(const TaskList& list);

// Whatever a group's tasks touch lies in its memory: what crosses a border in that of both.
std::vector<Footprint> stage_footprints(const Plan& plan, const TaskList& list);
std::size_t stage_bytes(const std::vector<Footprint>& footprints, GroupId group);

// Every group by its own costs, which know its blueprint of stage_blueprints().
class StageCosts final : public TaskCosts {
 public:
  explicit StageCosts(std::vector<std::unique_ptr<TaskCosts>> by_group)
      : by_group_(std::move(by_group)) {}

  Estimate of(const Task& task, int busy) const override;
  RuntimeCosts runtime() const override { return by_group_.front()->runtime(); }
  std::vector<double> spread(GroupId group) const override {
    return by_group_[group.value]->spread({});
  }
  MeasuredShares measured_shares(const TaskList& list, int busy) const override;

 private:
  std::vector<std::unique_ptr<TaskCosts>> by_group_;
};

}  // namespace regatta
