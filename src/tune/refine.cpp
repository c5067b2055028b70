#include "tune/refine.h"

#include <algorithm>

#include "base/error.h"
#include "exec/observe.h"

namespace regatta {

Refinement::Refinement(Executor& executor, const Recipe& recipe, Seconds shortest_run)
    : executor_(executor), data_(recipe.data), shortest_run_(shortest_run) {
  for (const DeviceGroup* group : groups_of(executor.plan()))
    wanted_ &= group->kind == DeviceKind::cpu;
}

Refinement::~Refinement() { executor_.watch_no_more(); }

void Refinement::on_step(const StepRecord& record) {
  time_ += record.duration;
  if (!wanted_) return;
  if (++steps_ == SpeedMeter::warm_up_steps)
    executor_.watch(
        [this](const ListTimes& done) {
          if (!trains(done.list.job)) return;
          if (!names_) names_ = std::make_unique<CostNames>(done.blueprint, data_, Pass::train);
          std::vector<Observation> seen = observations_of(done, *names_);
          seen_.insert(seen_.end(), std::make_move_iterator(seen.begin()),
                       std::make_move_iterator(seen.end()));
          ++timed_;
        },
        Depth::operators);
  if (timed_ < timed_steps) return;
  executor_.watch_no_more();
  wanted_ = false;
}

std::string Refinement::store(const ProfileStore& store) try {
  executor_.watch_no_more();
  if (timed_ >= timed_steps && time_ >= shortest_run_) store.learn(seen_);
  return "";
} catch (const Error& error) {
  return std::string("the profile was not refined: ") + error.what();
}

}  // namespace regatta
