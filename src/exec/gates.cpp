#include "exec/gates.h"

#include "exec/submission.h"

namespace regatta {

Gate::Waiter Gate::Queue::closed;

bool Gate::Queue::add(Waiter& waiter) {
  Waiter* latest = latest_.load(std::memory_order_acquire);
  do {
    if (latest == &closed) return false;
    waiter.next = latest;
  } while (!latest_.compare_exchange_weak(latest, &waiter, std::memory_order_acq_rel,
                                          std::memory_order_acquire));
  return true;
}

Gate::Waiter* Gate::Queue::close() {
  Waiter* last = latest_.exchange(&closed, std::memory_order_acq_rel);
  Waiter* first = nullptr;
  while (last) {
    Waiter* const before = last->next;
    last->next = first;
    first = last;
    last = before;
  }
  return first;
}

void Gate::wait_for(Queue& before, Waiter& waiter, TaskRun& run) {
  waiter.gate = this;
  waiter.run = &run;
  expected_.fetch_add(1, std::memory_order_relaxed);
  if (!before.add(waiter)) expected_.fetch_sub(1, std::memory_order_relaxed);
}

ListGates::ListGates(const InnerEdges& inner, std::span<TaskRun> runs, std::int64_t first_id)
    : inner_(inner), runs_(runs), first_id_(first_id), gates_(runs.size()), closed_(runs.size()) {
  for (std::size_t t = 0; t < runs.size(); ++t) gates_[t].expect(inner.waits[t]);
}

TaskRun& ListGates::run_of(std::size_t task) const { return runs_[task]; }

bool ListGates::in_order(std::size_t task, std::size_t next) const {
  return runs_[task].gpu >= 0 && runs_[task].gpu == runs_[next].gpu;
}

std::shared_ptr<ListGates> Gates::add(const TaskList& list, std::size_t step,
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
    const auto on = static_cast<std::size_t>(outer_[i].second - there->first_id_);
    Gate& before = there->gates_[on];
    const bool in_order = runs[task].gpu >= 0 && runs[task].gpu == there->runs_[on].gpu;
    made->gates_[task].wait_for(in_order ? before.handed_over : before.ended, made->waiters_[i],
                                runs[task]);
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
