// Gathering: where the graph is cut into segments.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace regatta {

// `op`: a segment per operator. `block`: a new one wherever a convolution or dense layer starts
// with nothing else in flight, so residual blocks stay whole. `step`: one for all. A number: that
// many, balanced by FLOPs. Throws InputError for anything else.
std::vector<Segment> segments_named(const Graph& graph, const std::string& choice);

}  // namespace regatta
