// How ranks bring a bucket's gradients together: which memory sends how much to which, round by
// round. A rank is a replica of the network: a node's devices, or one GPU of several. A ring has
// 2(n-1) rounds in which everyone sends one n-th to the next; a tree is binary; a hierarchy has a
// ring inside each node, or switch, and rings of those that there have the same piece of the sum; a
// server gets all and sends the sum to all; a chain passes a running sum along. The executor's
// messages are those of tasks/exchange_rounds.h.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "platform/wiring.h"

namespace regatta::sim {

struct Message {
  int from = 0, to = 0;  // in Exchange::ends
  double share = 1;      // of the bucket's bytes
};

// A message goes out when its sender has what the earlier rounds send it.
struct Round {
  std::vector<Message> messages;
  int times = 1;
};

struct Exchange {
  std::vector<Endpoint> ends;  // the ranks, then servers that are none
  std::vector<Round> rounds;
};

Exchange make_exchange(NodeUpdate update, const std::vector<Endpoint>& ranks, const Wiring& wiring);

}  // namespace regatta::sim
