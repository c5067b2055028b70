// A run's own record as it happens: taken in at little cost and written after the run. What would
// take too much memory is written meanwhile, by a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/store.h"
#include "trace/trace.h"

namespace regatta::trace {

struct RecorderOptions {
  std::filesystem::path file;
  // Steps to record, counted from 1, both included.
  std::int64_t first_step = 1, last_step = std::numeric_limits<std::int64_t>::max();
  // Steps that may be under way at once: so many more are recorded, because their tasks run before
  // the last step ends.
  int steps_in_flight = 1;
  bool operators = false;
  // What is written while the run goes on takes time from it, so rows are kept until they take half
  // of this; and the run waits rather than that they take more. By default about a million tasks.
  std::size_t most_kept = std::size_t{128} << 20;
};

// Everything that one submitted list did.
struct Piece {
  std::vector<Task> tasks;  // their ready times are filled in here
  std::vector<Dependency> dependencies;
  std::vector<Operator> operators;
};

// Used by one thread.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Recorder(RecorderOptions options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const RecorderOptions& options() const { return options_; }
  // Also of step 0, which is work between the steps.
  bool wants(std::int64_t step);
  Time time(Clock::time_point point) const { return (point - begin_).count(); }

  void metadata(const std::string& key, const std::string& value);
  std::int32_t add(const Worker& worker);
  std::int32_t add(const TaskKind& kind);
  std::int32_t number_of(const OperatorKind& kind);
  std::int64_t first_id(std::size_t tasks);  // for so many tasks

  void take(const Piece& piece);
  void take(const Mark& mark);
  void take(const Link& link);
  void take(const Counter& counter);

  // Writes what is left and gives the file its name. Throws what writing ran into.
  void finish();

 private:
  // Rows on their way to the store.
  struct Batch {
    std::vector<std::pair<std::string, std::string>> metadata;
    std::vector<Worker> workers;
    std::vector<TaskKind> kinds;
    std::vector<OperatorKind> operator_kinds;
    Piece pieces;  // one behind the other
    std::vector<Mark> marks;
    std::vector<Counter> counters;

    std::size_t bytes() const;
  };

  void work();
  void stop_thread();
  void write(Batch& batch);
  void hand_over_if_large();
  void fill_ready(Piece& piece);

  RecorderOptions options_;
  Clock::time_point begin_ = Clock::now();
  StoreWriter writer_;  // of the writing thread, and after it of the one that finishes
  std::int64_t next_id_ = 0, latest_step_ = 0;
  std::int32_t workers_ = 0, kinds_ = 0;
  std::map<std::tuple<std::string, std::string, std::string>, std::int32_t> operator_kinds_;
  std::vector<Link> links_;
  Batch gathered_;

  // Ends of the latest tasks, for ready times.
  std::deque<Time> ends_;
  std::int64_t first_end_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> waiting_;  // to be written
  std::size_t bytes_waiting_ = 0;
  bool memory_short_ = false;  // so the thread writes
  bool closing_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace regatta::trace
