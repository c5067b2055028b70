// trace/: the record of a run as data: who worked on what and when. Its store (SQLite), what can be
// concluded from it, writers for other people's viewers and readers of other people's traces.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regatta::trace {

// Since the clock of the record began. Nanoseconds as whole numbers, so that sums are exact.
using Time = std::int64_t;
inline constexpr Time unknown = -1;

constexpr double seconds(Time time) { return static_cast<double>(time) * 1e-9; }

struct Worker {
  std::string name;   // "cpu 3", "cuda 0"
  std::string group;  // device group of the plan
  std::string node;   // machine
  std::string kind;   // "cpu", "cuda", or network_kind
};
// The kind of a lane that shows messages between nodes: no worker of the machine.
inline constexpr const char* network_kind = "network";
inline bool computes(const Worker& worker) { return worker.kind != network_kind; }

// What tasks of all steps have in common: a task of the task list. -1 where it does not apply.
struct TaskKind {
  std::string job;     // "prepare", "train", "evaluate"; imported traces: where they come from
  std::string phases;  // what it does, in order: "forward+deliver+backward"
  std::string group;
  std::int32_t segment = -1, part = -1, chunk = -1, bucket = -1;
  std::int32_t priority = 0;
  double flops = 0;

  bool operator==(const TaskKind&) const = default;
};

// "forward s3 p1 c2": short, the same in every table and viewer.
std::string label(const TaskKind& kind);
// The phase that names it: compute before bookkeeping. "forward+deliver+backward" -> "forward".
std::string main_phase(const TaskKind& kind);

struct Task {
  std::int64_t id = 0;       // unique; rises in the order of submission
  std::int32_t kind = 0;     // index into Record::kinds
  std::int32_t worker = -1;  // index into Record::workers
  std::int64_t step = 0;     // counted from 1; 0: outside of steps
  Time submit = unknown;
  Time ready = unknown;  // everything it waits for has ended
  Time start = 0, end = 0;
  Time acquire = 0;          // of the time just before `start`: getting its data there
  Time predicted = unknown;  // duration that the scheduler was told

  Time duration() const { return end - start; }
};

// `task` could not start before `on` had ended.
struct Dependency {
  std::int64_t task = 0, on = 0;
};

// A moment with a number: the end of a step ("step") or of an epoch ("epoch").
struct Mark {
  std::string name;
  std::int64_t number = 0;
  Time time = 0;
};

struct OperatorKind {
  std::string name;  // node of the graph, or a kernel
  std::string op;    // "conv"; "kernel" for a device's own record
  std::string work;  // "forward", "backward", ...

  bool operator==(const OperatorKind&) const = default;
};

// Inside a task; only when asked for.
struct Operator {
  std::int64_t task = -1;  // -1: not known which
  std::int32_t kind = 0;   // index into Record::operator_kinds
  std::int32_t worker = -1;
  Time start = 0, end = 0;
};

// Totals of one direction between two memories, or of a link of a platform.
struct Link {
  std::string from, to;  // no `to`: a link whose ends nobody told, by its name
  std::int64_t bytes = 0, transfers = 0;
};
std::string link_name(const Link& link);  // "new-3 → rack-0"

// A time during which a link always carried something. Recordings that hold totals alone have none.
struct Transfer {
  std::int32_t link = 0;  // index into Record::links
  Time start = 0, end = 0;
  std::int64_t bytes = 0;
};

// A number that belongs to a moment: joules of a step, bytes of memory.
struct Counter {
  std::string name;    // "energy cpu", "energy gpu 0"
  std::string unit;    // "J"
  std::string source;  // "measured" or "estimate"
  std::int64_t step = 0;
  Time time = 0;
  double value = 0;
};

// Counter of the share of the workers' CPU time that others took during a step, from 0 to 1.
inline constexpr const char* taken_counter = "taken by others";

// Keys of the metadata that analysis reads: the steps that a recording was asked for. It may hold
// tasks of a few more, so that nothing is missing while those ran.
inline constexpr const char* first_step_key = "first_step";
inline constexpr const char* last_step_key = "last_step";
// Samples that all nodes together compute in a step.
inline constexpr const char* samples_key = "samples_per_step";

struct Record {
  std::map<std::string, std::string> metadata;
  std::vector<Worker> workers;
  std::vector<TaskKind> kinds;
  std::vector<Task> tasks;               // by id
  std::vector<Dependency> dependencies;  // by task
  std::vector<Mark> marks;               // by time
  std::vector<OperatorKind> operator_kinds;
  std::vector<Operator> operators;
  std::vector<Link> links;
  std::vector<Transfer> transfers;  // by link, then time; those of a link do not overlap
  std::vector<Counter> counters;

  const TaskKind& kind_of(const Task& task) const {
    return kinds[static_cast<std::size_t>(task.kind)];
  }
};

// Workers that compute or load.
std::size_t worker_count(const Record& record);

// By worker: "node3 · cpu 0", or "cpu 0" where all are on one node.
std::vector<std::string> lane_names(const Record& record);

// Every broken invariant, at most ten: ids that do not rise, indices out of range, times that run
// backwards. Empty for a sound record.
std::vector<std::string> faults(const Record& record);

}  // namespace regatta::trace
