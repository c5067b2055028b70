// A record for other people's viewers.
#pragma once

#include <ostream>

#include "trace/trace.h"

namespace regatta::trace {

// JSON for Perfetto and chrome://tracing: a process per node, a track per worker, operators inside
// tasks, arrows from a task to those that waited for it, counters, a track per link.
void write_perfetto(std::ostream& out, const Record& record);

// Paje for ViTE and pajeng: a container per node, group, worker and link; states named as StarPU
// names them: Executing (by phase), Overhead, Scheduling, Fetching Input, Sleeping, Idle.
void write_paje(std::ostream& out, const Record& record);

// A line per task, with a header.
void write_csv(std::ostream& out, const Record& record);

}  // namespace regatta::trace
