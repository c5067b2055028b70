// A platform with one thing changed, as people ask "what if".
#pragma once

#include <string>

#include "platform/platform.h"

namespace regatta {

// "+2 x NODE": two more like an entry. "-NODE": without it; of nodes that have a number, one of
// them. "-2 x NODE": without two of an entry. "NAME x10": ten times the bandwidth of a named link,
// of a switch's uplinks, of the links between two sites (FIRST-SECOND), of a node's own link, or of
// all links of nodes (network). Throws InputError that tells what can be changed.
Platform changed_platform(const Platform& platform, const std::string& change);

}  // namespace regatta
