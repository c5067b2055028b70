// A run's own record as it happens: taken in at little cost, written by a thread of its own, so
// that a long run is never held in memory.
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
#include <thread>
#include <tuple>

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

  void take(Piece piece);
  void take(const Mark& mark);
  void take(const Link& link);
  void take(const Counter& counter);

  // Writes what is left and gives the file its name. Throws what writing ran into.
  void finish();

 private:
  struct Batch {
    std::vector<Piece> pieces;
    std::vector<Mark> marks;
    std::vector<Counter> counters;
    std::size_t rows = 0;
  };

  void work();
  void write(Batch& batch);
  void hand_over_if_large();
  void fill_ready(Piece& piece);

  RecorderOptions options_;
  Clock::time_point begin_ = Clock::now();
  StoreWriter writer_;  // of the thread that records until there is another, then of that one
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
  Batch handed_;  // to the writing thread; nothing in it: it may have more
  bool closing_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace regatta::trace
