// Simulated steps under measured ones, in one timeline.
#pragma once

#include "trace/analysis.h"

namespace regatta {

// The kind of a worker that is only shown.
inline constexpr const char* simulated_kind = "simulated";
inline constexpr const char* simulated_store = "simulated.sqlite";  // in a run's folder

// Appends the simulated workers and their tasks to the record, so that both windows begin together,
// and how they spent their time to the analysis.
void overlay(trace::Record& record, trace::Analysis& analysis, const trace::Record& simulated);

}  // namespace regatta
