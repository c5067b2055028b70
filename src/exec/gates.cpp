#include "exec/gates.h"

namespace regatta {

Gate::Place Gate::nobody;

void Gate::wait_for(Gate& before, Place& place, TaskRun& run) {
  place.gate = this;
  place.run = &run;
  awaited_.fetch_add(1, std::memory_order_relaxed);
  Place* first = before.queue_.load(std::memory_order_acquire);
  do {
    if (first == &nobody) {
      awaited_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    place.behind = first;
  } while (!before.queue_.compare_exchange_weak(first, &place, std::memory_order_acq_rel,
                                                std::memory_order_acquire));
}

Gate::Place* Gate::close_queue() {
  Place* last = queue_.exchange(&nobody, std::memory_order_acq_rel);
  Place* first = nullptr;
  while (last) {
    Place* const before = last->behind;
    last->behind = first;
    first = last;
    last = before;
  }
  return first;
}

ListGates::ListGates(const TaskList& list, std::int64_t first_id, std::size_t step)
    : list_(list),
      first_id_(first_id),
      step_(step),
      gates_(list.tasks.size()),
      closed_(list.tasks.size()) {}

std::shared_ptr<ListGates> Gates::follow(const TaskList& list, std::size_t step) {
  // Buffers that are only read have more and more readers.
  constexpr std::int64_t many = 5'000;
  auto made = std::make_shared<ListGates>(list, next_id_, step);
  next_id_ += static_cast<std::int64_t>(list.tasks.size());
  const std::lock_guard lock(mutex_);
  while (!lists_.empty() && lists_.front()->all_open()) lists_.pop_front();
  lists_.push_back(made);
  if (const std::int64_t oldest = lists_.front()->first_id_; oldest > forgotten_ + many) {
    dependencies_.forget_before(oldest);
    forgotten_ = oldest;
  }
  return made;
}

ListGates* Gates::list_with(std::int64_t id) const {
  for (auto list = lists_.rbegin(); list != lists_.rend(); ++list)
    if (id >= (*list)->first_id_) return list->get();
  return nullptr;
}

void Gates::line_up(TaskRun& run, std::size_t task, ListGates& list) {
  const std::lock_guard lock(mutex_);
  for (const std::int64_t before :
       dependencies_.follow_task(list.list_, list.step_, list.first_id_, task)) {
    ListGates* const there = list_with(before);
    if (!there) continue;
    const auto index = static_cast<std::size_t>(before - there->first_id_);
    // A task that a running task hands over need not wait for the end of that one.
    if (submits(there->list_.tasks[index])) continue;
    list.gates_[task].wait_for(there->gates_[index], list.places_.emplace_back(), run);
  }
}

}  // namespace regatta
