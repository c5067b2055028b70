#include "trace/recorder.h"

#include <algorithm>
#include <utility>

namespace regatta::trace {
namespace {

// Bytes of rows that are handed to the writing thread at once.
constexpr std::size_t batch_bytes = std::size_t{1} << 20;
// What a task may depend on lies no further back.
constexpr std::size_t ends_kept = 1'000'000;

template <class Row>
void append(std::vector<Row>& to, const std::vector<Row>& rows) {
  to.insert(to.end(), rows.begin(), rows.end());
}
template <class Row>
std::size_t bytes_of(const std::vector<Row>& rows) {
  return rows.size() * sizeof(Row);
}

}  // namespace

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)), writer_(options_.file), thread_([this] { work(); }) {}

Recorder::~Recorder() { stop_thread(); }

bool Recorder::wants(std::int64_t step) {
  if (step > 0) latest_step_ = step;
  const std::int64_t at = step > 0 ? step : latest_step_;
  const bool late = at > options_.last_step && at - options_.last_step >= options_.steps_in_flight;
  return at >= options_.first_step && !late;
}

void Recorder::metadata(const std::string& key, const std::string& value) {
  gathered_.metadata.emplace_back(key, value);
}
std::int32_t Recorder::add(const Worker& worker) {
  gathered_.workers.push_back(worker);
  return workers_++;
}
std::int32_t Recorder::add(const TaskKind& kind) {
  gathered_.kinds.push_back(kind);
  return kinds_++;
}
std::int32_t Recorder::number_of(const OperatorKind& kind) {
  const auto [found, fresh] = operator_kinds_.try_emplace(
      {kind.name, kind.op, kind.work}, static_cast<std::int32_t>(operator_kinds_.size()));
  if (fresh) gathered_.operator_kinds.push_back(kind);
  return found->second;
}

std::int64_t Recorder::first_id(std::size_t tasks) {
  return std::exchange(next_id_, next_id_ + static_cast<std::int64_t>(tasks));
}

void Recorder::take(const Piece& piece) {
  append(gathered_.pieces.tasks, piece.tasks);
  append(gathered_.pieces.dependencies, piece.dependencies);
  append(gathered_.pieces.operators, piece.operators);
  hand_over_if_large();
}
void Recorder::take(const Mark& mark) {
  gathered_.marks.push_back(mark);
  hand_over_if_large();
}
void Recorder::take(const Counter& counter) {
  gathered_.counters.push_back(counter);
  hand_over_if_large();
}
void Recorder::take(const Link& link) { links_.push_back(link); }

std::size_t Recorder::Batch::bytes() const {
  return bytes_of(pieces.tasks) + bytes_of(pieces.dependencies) + bytes_of(pieces.operators) +
         bytes_of(marks) + bytes_of(counters);
}

void Recorder::hand_over_if_large() {
  const std::size_t bytes = gathered_.bytes();
  if (bytes < batch_bytes) return;
  std::unique_lock lock(mutex_);
  // A disk that cannot keep up slows the run down; memory stays bounded.
  changed_.wait(lock, [&] { return bytes_waiting_ < options_.most_kept || error_; });
  if (error_) std::rethrow_exception(error_);
  waiting_.push_back(std::exchange(gathered_, {}));
  bytes_waiting_ += bytes;
  // Before it is needed, so that the run need not wait.
  memory_short_ = memory_short_ || bytes_waiting_ > options_.most_kept / 2;
  if (memory_short_) changed_.notify_all();
}

void Recorder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || (memory_short_ && !waiting_.empty()); });
    if (closing_) return;
    Batch batch = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      write(batch);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    bytes_waiting_ -= batch.bytes();
    error_ = error;
    changed_.notify_all();
    if (error) return;
  }
}

void Recorder::stop_thread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Recorder::write(Batch& batch) {
  for (const auto& [key, value] : batch.metadata) writer_.metadata(key, value);
  for (const Worker& worker : batch.workers) writer_.add(worker);
  for (const TaskKind& kind : batch.kinds) writer_.add(kind);
  for (const OperatorKind& kind : batch.operator_kinds) writer_.add(kind);
  fill_ready(batch.pieces);
  writer_.add(std::span<const Dependency>(batch.pieces.dependencies));
  writer_.add(std::span<const Operator>(batch.pieces.operators));
  writer_.add(std::span<const Task>(batch.pieces.tasks));
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
  stop_thread();
  if (error_) std::rethrow_exception(error_);
  for (; !waiting_.empty(); waiting_.pop_front()) write(waiting_.front());
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
