// The records of several nodes as one, on one clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace regatta::trace {

// Metadata of a record that is to be merged: what the clock of its process showed when the record
// began, in nanoseconds.
inline constexpr const char* clock_begin_key = "clock_begin_ns";
// Metadata of a merged record: no time of it is further from the first node's clock than so many
// nanoseconds.
inline constexpr const char* clock_error_key = "clock_error_ns";

// A node's clock minus the first node's, in nanoseconds: measured twice, and taken to change evenly
// between and beyond.
struct ClockLine {
  Time first_at = 0, first_offset = 0;  // what the first node's clock showed, and the offset
  Time last_at = 0, last_offset = 0;
  Time error = 0;  // of both offsets, at most

  Time to_first(Time there) const;  // what the first node's clock showed then
};

struct NodeRecord {
  Record record;
  std::string node;  // its workers get this name
  ClockLine clock = {};
  // Another node before it is on the same machine: counters of the whole machine would be counted
  // twice, so measured joules are left out.
  bool shares_machine = false;
};

// Times are those of the first node's clock. Marks and metadata are the first node's. Tasks of the
// nodes follow each other, so ids change; kinds of tasks stay those of each node.
Record merged(std::vector<NodeRecord> nodes);

// How far the clocks of a record of several nodes may be apart; none: it has one clock.
std::optional<Time> clock_error(const Record& record);
// The same as a line for people, or nothing.
std::string clock_text(const Record& record);

}  // namespace regatta::trace
