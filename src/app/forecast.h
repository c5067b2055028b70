// What is predicted of a job on this machine by playing its task list.
#pragma once

#include <memory>

#include "tasks/play.h"
#include "train/job.h"

namespace regatta::app {

// A job's task list with its costs. Not to be moved: its parts refer to each other.
class Forecast {
 public:
  // Costs by the job's profile, or what is stored of this machine.
  explicit Forecast(const TrainJob& job);
  Forecast(const Forecast&) = delete;
  Forecast& operator=(const Forecast&) = delete;

  const Blueprint& blueprint() const { return blueprint_; }
  const TaskList& list() const { return list_; }
  const TaskCosts& costs() const { return *costs_; }

  Played play() const;
  // For Placement::fixed: the order that a play gives.
  std::vector<std::vector<std::uint32_t>> order() const;

 private:
  Blueprint blueprint_;
  TaskList list_;
  std::unique_ptr<TaskCosts> costs_;
};

// Of this machine, that a plan's workers use.
int cpus_of(const Plan& plan);

// What is stored of this machine; empty if nothing was measured yet.
std::shared_ptr<const Profile> profile_here();

}  // namespace regatta::app
