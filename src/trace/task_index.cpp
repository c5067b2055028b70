#include "trace/task_index.h"

#include <algorithm>

namespace regatta::trace {

TaskIndex::TaskIndex(const Record& record)
    : record_(record), lines_(record.workers.size()), places_(record.tasks.size()) {
  for (std::size_t i = 0; i < record.tasks.size(); ++i)
    lines_[static_cast<std::size_t>(record.tasks[i].worker)].push_back(
        static_cast<std::int64_t>(i));
  const auto order = [&](std::int64_t position) {
    const Task& task = record.tasks[static_cast<std::size_t>(position)];
    return std::tuple(task.start, task.end, position);
  };
  for (auto& line : lines_) {
    std::ranges::sort(line, {}, order);
    for (std::size_t i = 0; i < line.size(); ++i) places_[static_cast<std::size_t>(line[i])] = i;
  }
  first_.resize(record.tasks.size() + 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> known;
  known.reserve(record.dependencies.size());
  for (const Dependency& each : record.dependencies) {
    const std::int64_t task = position(each.task), on = position(each.on);
    if (task < 0 || on < 0) continue;
    known.emplace_back(task, on);
    ++first_[static_cast<std::size_t>(task) + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  on_.resize(known.size());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (const auto& [task, on] : known) on_[next[static_cast<std::size_t>(task)]++] = on;
}

std::int64_t TaskIndex::position(std::int64_t id) const {
  if (record_.tasks.empty()) return -1;
  // Ids mostly have no holes.
  const auto size = static_cast<std::int64_t>(record_.tasks.size());
  const std::int64_t guess = id - record_.tasks.front().id;
  if (guess >= 0 && guess < size && record_.tasks[static_cast<std::size_t>(guess)].id == id)
    return guess;
  const auto found = std::ranges::lower_bound(record_.tasks, id, {}, &Task::id);
  return found == record_.tasks.end() || found->id != id ? -1 : found - record_.tasks.begin();
}

std::span<const std::int64_t> TaskIndex::dependencies(std::int64_t position) const {
  const auto at = static_cast<std::size_t>(position);
  return std::span(on_).subspan(first_[at], first_[at + 1] - first_[at]);
}

std::int64_t TaskIndex::last_dependency(std::int64_t position) const {
  std::int64_t last = -1;
  for (const std::int64_t on : dependencies(position))
    if (last < 0 || record_.tasks[static_cast<std::size_t>(on)].end >
                        record_.tasks[static_cast<std::size_t>(last)].end)
      last = on;
  return last;
}

}  // namespace regatta::trace
