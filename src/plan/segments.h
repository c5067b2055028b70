// Gathering: where the graph is cut into segments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace regatta {

// `op`: a segment per operator. `block`: a new one wherever a convolution or dense layer starts
// with nothing else in flight, so residual blocks stay whole. `step`: one for all. A number: that
// many, balanced by FLOPs. Throws InputError for anything else.
std::vector<Segment> segments_named(const Graph& graph, const std::string& choice);

// Marks those that are computed again in backward: `all` but the last, whose backward follows its
// forward at once, or numbers counted from 0, such as 0-3,7. None for no choice and for `auto`,
// which whoever knows the memory settles. Throws InputError.
void mark_recomputed(std::vector<Segment>& segments, const std::optional<std::string>& choice);

}  // namespace regatta
