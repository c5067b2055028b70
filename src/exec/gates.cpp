#include "exec/gates.h"

#include "exec/submission.h"

namespace regatta {

Gate::Waiter Gate::nobody;

void Gate::wait_for(Gate& before, Waiter& waiter, TaskRun& run) {
  waiter.gate = this;
  waiter.run = &run;
  awaited_.fetch_add(1, std::memory_order_relaxed);
  Waiter* first = before.queue_.load(std::memory_order_acquire);
  do {
    if (first == &nobody) {
      awaited_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    waiter.next = first;
  } while (!before.queue_.compare_exchange_weak(first, &waiter, std::memory_order_acq_rel,
                                                std::memory_order_acquire));
}

Gate::Waiter* Gate::close_queue() {
  Waiter* last = queue_.exchange(&nobody, std::memory_order_acq_rel);
  Waiter* first = nullptr;
  while (last) {
    Waiter* const before = last->next;
    last->next = first;
    first = last;
    last = before;
  }
  return first;
}

ListGates::ListGates(const InnerEdges& inner, std::span<TaskRun> runs, std::int64_t first_id)
    : inner_(inner), runs_(runs), first_id_(first_id), gates_(runs.size()), closed_(runs.size()) {
  for (std::size_t t = 0; t < runs.size(); ++t) gates_[t].await(inner.waits[t]);
}

TaskRun& ListGates::run_of(std::size_t task) const { return runs_[task]; }

std::shared_ptr<ListGates> Gates::follow(const TaskList& list, std::size_t step,
                                         std::span<TaskRun> runs) {
  // Task ids between two calls of forget_before(): the readers of a buffer that is never written
  // would pile up without them.
  constexpr std::int64_t many = 5'000;
  const std::int64_t first_id = next_id_;
  next_id_ += static_cast<std::int64_t>(runs.size());
  while (!lists_.empty() && lists_.front()->all_open()) lists_.pop_front();
  const std::int64_t oldest = lists_.empty() ? first_id : lists_.front()->first_id_;
  if (oldest > forgotten_ + many) {
    dependencies_.forget_before(oldest);
    forgotten_ = oldest;
  }
  auto made = std::make_shared<ListGates>(dependencies_.inner(list), runs, first_id);
  dependencies_.follow_outer(list, step, first_id, outer_);
  made->waiters_.resize(outer_.size());
  for (std::size_t i = 0; i < outer_.size(); ++i) {
    ListGates* const there = list_with(outer_[i].second);
    if (!there) continue;
    const auto task = static_cast<std::size_t>(outer_[i].first - first_id);
    Gate& before = there->gates_[static_cast<std::size_t>(outer_[i].second - there->first_id_)];
    made->gates_[task].wait_for(before, made->waiters_[i], runs[task]);
  }
  lists_.push_back(made);
  return made;
}

ListGates* Gates::list_with(std::int64_t id) const {
  for (auto list = lists_.rbegin(); list != lists_.rend(); ++list)
    if (id >= (*list)->first_id_) return list->get();
  return nullptr;
}

}  // namespace regatta
