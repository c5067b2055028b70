// Small networks in which each operator stands between parameters, so that its forward shows in the
// loss and its backward in their gradients.
#pragma once

#include <functional>
#include <ostream>
#include <vector>

#include "ops/builder.h"

namespace regatta {

struct SmallNetwork {
  const char* name;
  Shape input;
  std::function<NodeId(NetBuilder&)> body;  // returns the logits
  bool fused = true;
};

void PrintTo(const SmallNetwork& network, std::ostream* out);

Graph build(const SmallNetwork& network);

// A last dense layer of seven classes.
NodeId head(NetBuilder& net, NodeId x);

std::vector<SmallNetwork> small_networks();

// The same for groups, dilation, uneven padding, activations, averages, concatenation, dropout and
// the norms of one sample.
std::vector<SmallNetwork> more_small_networks();

}  // namespace regatta
