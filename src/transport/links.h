// How fast messages go between the ranks of a run.
#pragma once

#include <vector>

#include "transport/transport.h"

namespace regatta {

struct MeasuredLink {
  double latency = 0;    // seconds, one way
  double bandwidth = 0;  // bytes a second
};

// By rank and rank, the same both ways. All pairs one after the other, a few messages each; called
// by all ranks together, which all get all figures.
std::vector<std::vector<MeasuredLink>> measure_links(Transport& transport);

}  // namespace regatta
