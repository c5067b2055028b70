#include "tasks/split_updates.h"

#include <algorithm>
#include <map>

namespace regatta {
namespace {

bool wants_exchange(Phase phase) { return phase == Phase::measure || phase == Phase::update; }

// Where a task is to be cut; its begin or end: nowhere.
std::vector<Action>::const_iterator cut_of(const Task& task) {
  return std::ranges::find_if(task.actions, wants_exchange, &Action::phase);
}
bool is_cut(const Task& task) {
  return cut_of(task) != task.actions.begin() && cut_of(task) != task.actions.end();
}

bool after_exchange(const Task& task) {
  const Phase first = task.actions.front().phase;
  return wants_exchange(first) || first == Phase::clip || first == Phase::pack;
}

}  // namespace

TaskList split_updates(const TaskList& list) {
  TaskList split{list.job, list.buffers, {}};
  for (const Task& task : list.tasks) {
    const auto cut = cut_of(task);
    if (!is_cut(task)) {
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

std::vector<FixedPlace> split_places(const Blueprint& blueprint, const TaskList& whole,
                                     const TaskList& split) {
  if (blueprint.plan.placement != Placement::fixed) return fixed_places(blueprint, split);
  const std::vector<FixedPlace> of_whole = fixed_places(blueprint, whole);
  std::vector<FixedPlace> places;
  std::map<std::pair<int, std::int64_t>, std::size_t> in_turn;  // by worker and turn
  for (std::size_t t = 0; t < whole.tasks.size(); ++t)
    for (int half = is_cut(whole.tasks[t]) ? 0 : 1; half < 2; ++half) {
      places.push_back(of_whole[t]);
      if (after_exchange(split.tasks[places.size() - 1])) places.back().turn = 0;
      if (places.back().turn > 0)
        in_turn[{places.back().worker, places.back().turn}] = places.size() - 1;
    }
  // Without gaps.
  std::map<int, std::int64_t> turns;
  for (const auto& [key, task] : in_turn) places[task].turn = ++turns[key.first];
  return places;
}

std::vector<BucketId> awaited_buckets(const Task& task) {
  std::vector<BucketId> buckets;
  for (const Action& action : task.actions)
    if (wants_exchange(action.phase) && std::ranges::find(buckets, action.bucket) == buckets.end())
      buckets.push_back(action.bucket);
  return buckets;
}

}  // namespace regatta
