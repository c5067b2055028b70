// What tasks are expected to take: the numbers that the planner, the simulator and the schedulers
// share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "profile/profile.h"
#include "tasks/cost_names.h"
#include "tasks/task_list.h"

namespace regatta {

// How much of a predicted time rests on measurements of the same work, from 0 to 1; the rest is
// guessed.
struct MeasuredShares {
  double any_size = 1;   // measured at whatever size
  double near_size = 1;  // at sizes near to those of the tasks
};

class TaskCosts {
 public:
  virtual ~TaskCosts() = default;

  // What a task costs on a full batch. `busy`: workers of its group that compute at that time, this
  // one included; they share memory bandwidth.
  virtual Estimate of(const Task& task, int busy) const = 0;
  virtual RuntimeCosts runtime() const = 0;
  // How far the times of a group's tasks spread, as Spread takes it; empty: not known.
  virtual std::vector<double> spread(GroupId /*group*/) const { return {}; }
  // How much of the predicted time of these tasks, with `busy` workers computing, rests on
  // measurements.
  virtual MeasuredShares measured_shares(const TaskList& /*list*/, int /*busy*/) const {
    return {};
  }
};

// Makes the costs of a plan's tasks; the blueprint outlives them.
using CostsFor = std::function<std::unique_ptr<TaskCosts>(const Blueprint&)>;

// By task: seconds from the begin of a list's submission to its own.
std::vector<double> submitted_after(const TaskList& list, const RuntimeCosts& runtime);

// Seconds that a worker takes to submit a task that waited for the one it has ended, before it
// comes to the next.
double release_seconds(const Task& next, const RuntimeCosts& runtime);

// A task costs what its instructions cost, by the profile; what the profile lacks is guessed from
// FLOPs and bytes, with a wide interval. Not for several threads at once: it remembers its answers.
class ProfileCosts : public TaskCosts {
 public:
  // `data` as the recipe writes it; the blueprint must stay. No profile: all is guessed.
  ProfileCosts(const Blueprint& blueprint, std::shared_ptr<const Profile> profile,
               const std::string& data, Pass pass = Pass::train);

  Estimate of(const Task& task, int busy) const override;
  RuntimeCosts runtime() const override { return runtime_; }
  std::vector<double> spread(GroupId group) const override;
  MeasuredShares measured_shares(const TaskList& list, int busy) const override;

 private:
  struct Answer {
    Estimate cost;
    double known = 0;     // seconds of it that were measured, at about this size
    double measured = 0;  // seconds of it that were measured, at any size

    void add(const Answer& other, double share = 1) {
      cost += {share * other.cost.seconds, share * other.cost.low, share * other.cost.high};
      known += share * other.known;
      measured += share * other.measured;
    }
  };
  // All that the cost of an action depends on.
  using Question = std::tuple<Phase, std::uint32_t, std::uint32_t, std::int64_t, std::uint32_t,
                              std::uint32_t, int>;
  const Answer& answer(const Action& action, int busy) const;
  Answer answer(const Task& task, int busy) const;
  void add(Answer& answer, const CostPiece& piece, int busy) const;

  CostNames names_;
  std::shared_ptr<const Profile> profile_;
  RuntimeCosts runtime_;
  mutable std::map<Question, Answer> answers_;
  struct Fits {
    const Fit *own = nullptr, *in_one_segment = nullptr;
  };
  static Estimate measured(const Fits& fits, const CostPiece& piece, int busy);
  mutable std::map<const CostName*, Fits> fits_;
};

}  // namespace regatta
