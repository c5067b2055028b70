#include "exec/submission.h"

namespace regatta {

void Submission::fail(std::exception_ptr cause) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(cause);
  failed = true;
}

void Submission::saw(std::size_t order, std::string what) {
  const std::lock_guard lock(mutex_);
  if (!first_seen_.empty() && first_order_ <= order) return;
  first_order_ = order;
  first_seen_ = std::move(what);
}

// Two counts, so that the time is there before anyone is woken, or goes on with the next list.
void Submission::task_done() {
  if (undone.fetch_sub(1) == 1) result.finished = std::chrono::steady_clock::now();
}

void Submission::task_finished() {
  if (remaining.fetch_sub(1) == 1) remaining.notify_all();
}

void Submission::await(bool spin) const {
  constexpr auto patience = std::chrono::milliseconds(2);
  const auto begin = std::chrono::steady_clock::now();
  while (spin && remaining != 0 && std::chrono::steady_clock::now() - begin < patience)
    __builtin_ia32_pause();
  for (std::size_t left = remaining; left != 0; left = remaining) remaining.wait(left);
}

StepResult Submission::wait(bool spin) {
  await(spin);
  if (error_) std::rethrow_exception(error_);
  return std::move(result);
}

}  // namespace regatta
