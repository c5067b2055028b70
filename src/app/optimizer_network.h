// The network of a platform as the optimizer sees it: what leaves a node or a site, and what
// exchanges of gradients take.
#pragma once

#include "optimize/problem.h"
#include "platform/platform.h"

namespace regatta::app {

// Sets the problem's domains, its nodes' links and its exchange. Its nodes are the platform's
// entries. Of switches that have a count only what is above them is known to the bound.
void add_network(optimize::Problem& problem, const Platform& platform);

}  // namespace regatta::app
