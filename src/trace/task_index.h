// A record's tasks, found by worker and by dependency. Tasks are named by their position.
#pragma once

#include <span>

#include "trace/trace.h"

namespace regatta::trace {

class TaskIndex {
 public:
  explicit TaskIndex(const Record& record);

  // -1: not in the record.
  std::int64_t position(std::int64_t id) const;
  // In the order of their start.
  const std::vector<std::int64_t>& of_worker(std::size_t worker) const { return lines_[worker]; }
  // Where a task stands in its worker's order.
  std::size_t place(std::int64_t position) const {
    return places_[static_cast<std::size_t>(position)];
  }
  std::span<const std::int64_t> dependencies(std::int64_t position) const;
  // The one that ended last, -1: none.
  std::int64_t last_dependency(std::int64_t position) const;

 private:
  const Record& record_;
  std::vector<std::vector<std::int64_t>> lines_;
  std::vector<std::size_t> places_;
  std::vector<std::size_t> first_;  // of a task's dependencies in on_
  std::vector<std::int64_t> on_;
};

}  // namespace regatta::trace
