// What happened to a job: a log of numbered files, each created once and never changed. Whoever
// creates entry N + 1 decides what follows entry N, and all others learn of it when they try. So a
// claim, its takeover and the result exclude each other by one atomic operation:
//
//   1 claim by a, 2 claim by b (a was gone), 3 result of b        a's own result finds 2 taken
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "tickets/file_layer.h"

namespace regatta::tickets {

enum class EntryKind {
  claim,     // a worker does the job from now on
  released,  // it gave the job back, unfinished; with `again`, failures before it are forgiven
  failed,    // the job broke off with an error
  result,    // the last entry: the job is done
};

struct LogEntry {
  EntryKind kind = EntryKind::claim;
  std::string worker;  // who wrote it
  Json body = {};      // machine and time; why; what came of the job
};

// A job that failed so often fails for good: once may be its machine's fault.
inline constexpr int most_failures = 2;

struct JobState {
  std::vector<LogEntry> entries;  // entry 1 is the first

  int next() const { return static_cast<int>(entries.size()) + 1; }
  bool done() const { return !entries.empty() && entries.back().kind == EntryKind::result; }
  bool claimed() const { return !entries.empty() && entries.back().kind == EntryKind::claim; }
  int failures() const;
  bool failed() const { return !done() && failures() >= most_failures; }
  const LogEntry& last() const { return entries.back(); }
};

class JobLog {
 public:
  JobLog(FileLayer& files, std::filesystem::path folder);

  // Reads entries that came since; entries never change, so none is read twice.
  const JobState& refresh();
  const JobState& state() const { return state_; }

  // True if `entry` became entry `number`, which must be the next one as far as this process knows.
  // False if another process was faster; then the log is read again.
  bool append(int number, const LogEntry& entry);

 private:
  std::filesystem::path path_of(int number) const;

  FileLayer& files_;
  std::filesystem::path folder_;
  JobState state_;
};

}  // namespace regatta::tickets
