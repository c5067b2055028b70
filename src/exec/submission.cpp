#include "exec/submission.h"

#include <algorithm>

namespace regatta {
namespace {

UpdateNumbers numbers_of(const OptimizerSettings& optimizer, const StepInput& input) {
  const bool adam = optimizer.kind == OptimizerKind::adam || optimizer.kind == OptimizerKind::adamw;
  return update_numbers(optimizer, input.learning_rate.value_or(optimizer.learning_rate),
                        input.momentum.value_or(adam ? optimizer.beta1 : optimizer.momentum),
                        input.update);
}

// The spans of this rank's chunks, out of those of the whole batch.
std::vector<ChunkSpan> spans_here(const RankPlace& ranks, const std::vector<ChunkSpan>& batch) {
  if (!ranks.several()) return batch;
  const auto first = batch.begin() + static_cast<std::ptrdiff_t>(ranks.own().first);
  return {first, first + static_cast<std::ptrdiff_t>(ranks.own().count)};
}

}  // namespace

std::shared_ptr<Submission> make_submission(const Blueprint& blueprint, ListKind job,
                                            StepInput input, std::uint64_t seed) {
  auto made = std::make_shared<Submission>();
  made->job = job;
  made->seed = seed;
  if (takes_step(job)) made->numbers = numbers_of(blueprint.optimizer, input);
  const bool in_groups = trains(job) && input.keeps_groups;
  made->batch_spans = share_out_batch(
      blueprint, input.samples, in_groups ? std::max<std::int64_t>(1, blueprint.group_samples) : 1);
  made->spans = spans_here(blueprint.ranks, made->batch_spans);
  made->result.wishes = input.wishes;
  const auto samples = static_cast<std::size_t>(input.samples);
  made->result.losses.resize(samples);
  made->result.correct.resize(samples);
  if (job == ListKind::evaluate) {
    made->result.labels.resize(samples);
    made->result.logits.resize(samples * static_cast<std::size_t>(blueprint.graph.classes()));
  }
  made->input = std::move(input);
  return made;
}

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
