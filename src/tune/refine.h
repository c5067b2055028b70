// Training refines the profile for free: a few steps after warm-up are timed, and are a session of
// the profile's when the run has ended well.
#pragma once

#include <memory>
#include <vector>

#include "exec/executor.h"
#include "plan/recipe.h"
#include "profile/store.h"
#include "tasks/cost_names.h"
#include "train/loop.h"

namespace regatta {

class Refinement {
 public:
  // Nothing is learned of GPUs: their tasks overlap. The executor must stay until store().
  // Storing takes some milliseconds: shorter runs are not worth it.
  Refinement(Executor& executor, const Recipe& recipe, Seconds shortest_run = Seconds(5));
  ~Refinement();
  Refinement(const Refinement&) = delete;
  Refinement& operator=(const Refinement&) = delete;

  void on_step(const StepRecord& record);

  // Adds what was seen to the profile, if the run was long enough to make up for it. What goes
  // wrong is no reason for a run to fail: it is told in one line, else nothing is.
  std::string store(const ProfileStore& store);

 private:
  static constexpr int timed_steps = 5;  // their median ignores two that were disturbed

  Executor& executor_;
  std::string data_;
  Seconds shortest_run_;
  bool wanted_ = true;
  std::size_t steps_ = 0;
  int timed_ = 0;
  Seconds time_{0};
  std::unique_ptr<CostNames> names_;
  std::vector<Observation> seen_;
};

}  // namespace regatta
