#include "trace/recorder.h"

#include <algorithm>
#include <utility>

namespace regatta::trace {
namespace {

// So many rows are kept before they are written: a window of some steps never disturbs the run, and
// a long run is written in large pieces.
constexpr std::size_t rows_kept = 100'000;
// What a task may depend on lies no further back.
constexpr std::size_t ends_kept = 1'000'000;

}  // namespace

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)), writer_(options_.file), thread_([this] { work(); }) {}

Recorder::~Recorder() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Recorder::wants(std::int64_t step) {
  if (step > 0) latest_step_ = step;
  const std::int64_t at = step > 0 ? step : latest_step_;
  const bool late = at > options_.last_step && at - options_.last_step >= options_.steps_in_flight;
  return at >= options_.first_step && !late;
}

void Recorder::metadata(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  writer_.metadata(key, value);
}
std::int32_t Recorder::add(const Worker& worker) {
  const std::lock_guard lock(mutex_);
  writer_.add(worker);
  return workers_++;
}
std::int32_t Recorder::add(const TaskKind& kind) {
  const std::lock_guard lock(mutex_);
  writer_.add(kind);
  return kinds_++;
}
std::int32_t Recorder::number_of(const OperatorKind& kind) {
  const auto [found, fresh] = operator_kinds_.try_emplace(
      {kind.name, kind.op, kind.work}, static_cast<std::int32_t>(operator_kinds_.size()));
  if (fresh) {
    const std::lock_guard lock(mutex_);
    writer_.add(kind);
  }
  return found->second;
}

std::int64_t Recorder::first_id(std::size_t tasks) {
  return std::exchange(next_id_, next_id_ + static_cast<std::int64_t>(tasks));
}

void Recorder::take(Piece piece) {
  gathered_.rows += piece.tasks.size() + piece.dependencies.size() + piece.operators.size();
  gathered_.pieces.push_back(std::move(piece));
  hand_over_if_large();
}
void Recorder::take(const Mark& mark) {
  ++gathered_.rows;
  gathered_.marks.push_back(mark);
  hand_over_if_large();
}
void Recorder::take(const Counter& counter) {
  ++gathered_.rows;
  gathered_.counters.push_back(counter);
  hand_over_if_large();
}
void Recorder::take(const Link& link) { links_.push_back(link); }

void Recorder::hand_over_if_large() {
  if (gathered_.rows < rows_kept) return;
  std::unique_lock lock(mutex_);
  // A disk that cannot keep up slows the run down; memory stays bounded.
  changed_.wait(lock, [&] { return handed_.rows == 0 || error_; });
  if (error_) std::rethrow_exception(error_);
  handed_ = std::exchange(gathered_, {});
  changed_.notify_all();
}

void Recorder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || handed_.rows > 0; });
    if (handed_.rows == 0) return;
    try {
      write(handed_);
    } catch (...) {
      error_ = std::current_exception();
    }
    handed_ = {};
    changed_.notify_all();
    if (error_) return;
  }
}

void Recorder::write(Batch& batch) {
  for (Piece& piece : batch.pieces) {
    fill_ready(piece);
    writer_.add(std::span<const Dependency>(piece.dependencies));
    writer_.add(std::span<const Operator>(piece.operators));
    writer_.add(std::span<const Task>(piece.tasks));
  }
  for (const Mark& mark : batch.marks) writer_.add(mark);
  for (const Counter& counter : batch.counters) writer_.add(counter);
}

void Recorder::fill_ready(Piece& piece) {
  for (const Task& task : piece.tasks) ends_.push_back(task.end);
  auto next = piece.dependencies.begin();
  for (Task& task : piece.tasks) {
    if (task.ready == unknown) task.ready = task.submit;
    for (; next != piece.dependencies.end() && next->task <= task.id; ++next) {
      const std::int64_t at = next->on - first_end_;
      if (next->task == task.id && at >= 0 && at < static_cast<std::int64_t>(ends_.size()))
        task.ready = std::max(task.ready, ends_[static_cast<std::size_t>(at)]);
    }
    task.ready = std::min(task.ready, task.start);
  }
  while (ends_.size() > ends_kept) {
    ends_.pop_front();
    ++first_end_;
  }
}

void Recorder::finish() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return handed_.rows == 0 || error_; });
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (error_) std::rethrow_exception(error_);
  write(gathered_);
  for (const Link& link : links_) writer_.add(link);
  const std::int64_t last = std::min(options_.last_step, latest_step_);
  if (last >= options_.first_step) {
    writer_.metadata(first_step_key, std::to_string(options_.first_step));
    writer_.metadata(last_step_key, std::to_string(last));
  }
  writer_.finish();
}

}  // namespace regatta::trace
