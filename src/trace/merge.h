// Merges the records of several nodes into one, with all times on the first node's clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace regatta::trace {

// Metadata key of a record that is to be merged: the reading of its process's clock when the record
// began, in nanoseconds.
inline constexpr const char* clock_begin_key = "clock_begin_ns";
// Metadata key of a merged record: the largest error of its times against the first node's clock,
// in nanoseconds.
inline constexpr const char* clock_error_key = "clock_error_ns";

// The offset of a node's clock, that is its reading minus the first node's, as a straight line
// through two measurements. All in nanoseconds.
struct ClockLine {
  Time first_at = 0, first_offset = 0;  // first measurement: the first node's clock, the offset
  Time last_at = 0, last_offset = 0;    // second measurement
  Time error = 0;                       // the largest error of the two offsets

  // The reading of the first node's clock when this node's clock showed `there`.
  Time to_first(Time there) const;
};

struct NodeRecord {
  Record record;
  std::string node;  // becomes Worker::node of all its workers
  ClockLine clock = {};
  // An earlier node is on the same machine. Measured joules of this one are left out, because both
  // read the counters of the whole machine.
  bool shares_machine = false;
};

// Marks and metadata are the first node's. Tasks are ordered by node and get new ids. Task kinds
// are appended node by node: equal kinds of two nodes stay two kinds.
Record merged(std::vector<NodeRecord> nodes);

// The value of clock_error_key in nanoseconds; none for a record that was not merged.
std::optional<Time> clock_error(const Record& record);
// The same as a sentence for the user; empty for a record that was not merged.
std::string clock_text(const Record& record);

}  // namespace regatta::trace
