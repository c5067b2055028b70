#include "sim/split_updates.h"

#include <algorithm>

namespace regatta::sim {
namespace {

bool wants_exchange(Phase phase) { return phase == Phase::measure || phase == Phase::update; }

}  // namespace

TaskList split_updates(const TaskList& list) {
  TaskList split{list.job, list.buffers, {}};
  for (const Task& task : list.tasks) {
    const auto cut =
        std::ranges::find_if(task.actions, wants_exchange, [](const Action& a) { return a.phase; });
    if (cut == task.actions.begin() || cut == task.actions.end()) {
      split.tasks.push_back(task);
      continue;
    }
    // Both name all buffers of the whole, so the second waits for the first.
    Task before = task, after = task;
    before.actions.assign(task.actions.begin(), cut);
    after.actions.assign(cut, task.actions.end());
    after.flops = 0;
    for (Access& access : after.accesses)
      if (access.mode == Mode::write) access.mode = Mode::read_write;
    split.tasks.push_back(std::move(before));
    split.tasks.push_back(std::move(after));
  }
  return split;
}

std::vector<BucketId> awaited_buckets(const Task& task) {
  std::vector<BucketId> buckets;
  for (const Action& action : task.actions)
    if (wants_exchange(action.phase) && std::ranges::find(buckets, action.bucket) == buckets.end())
      buckets.push_back(action.bucket);
  return buckets;
}

}  // namespace regatta::sim
