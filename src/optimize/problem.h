// optimize/: which devices of a platform should train a network, with which shares and in which
// power states, for the least time, energy or money; and a proven bound of how good any plan could
// be. Plain functions on plain numbers: nothing here knows networks, simulators or files.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace regatta::optimize {

// What some samples cost: `fixed` however few they are, and `per_sample` for each.
struct CostLine {
  double fixed = 0, per_sample = 0;

  double at(double samples) const { return fixed + per_sample * samples; }
  CostLine& operator+=(const CostLine& other) {
    fixed += other.fixed;
    per_sample += other.per_sample;
    return *this;
  }
  bool operator==(const CostLine&) const = default;
};

// What a chunk of a batch needs, all segments forward and backward.
struct ChunkCost {
  double chain_s = 0;  // from its begin to its end, whichever workers compute it
  double seconds = 0;  // of the device, whose workers compute several chunks at a time
  double joules = 0;
};

// What no plan of the class undercuts, by segment. Joules are those drawn beyond idle.
struct LeastCosts {
  std::vector<CostLine> seconds, joules;  // forward and backward of some samples
  // For each size that teams may have, the costs of chunks of 1, 2, 3, ... samples. Empty: nothing
  // is known but `seconds` and `joules`.
  std::vector<std::vector<ChunkCost>> chunks;
  // A step that computes several chunks at a time needs this in addition, in seconds and joules:
  // their gradients and statistics meet.
  double meeting_s = 0, meeting_j = 0;
  // The step of the segment's parameters, which some device takes once a step of training. Empty:
  // nothing is known of it.
  std::vector<double> update_s, update_j;

  double update_seconds(std::size_t segment) const {
    return update_s.empty() ? 0 : update_s[segment];
  }
  double update_joules(std::size_t segment) const {
    return update_j.empty() ? 0 : update_j[segment];
  }
};

// A power state of a device group: how fast it is there and what it draws.
struct DeviceState {
  std::string name;               // empty: full speed
  std::vector<CostLine> seconds;  // by segment: forward and backward of some samples
  LeastCosts least;               // by the lower ends of the costs' intervals
  LeastCosts certain;             // as if costs were certain: tells how much intervals matter
  // The whole batch on this device alone: in one segment, and cut otherwise than a share among
  // several. 0: as `seconds` say.
  double alone_s = 0;
  double idle_watts = 0;  // of the whole group
  double busy_watts = 0;  // drawn beyond idle while it computes
};

// What computes a share by itself: a node's cores together, or each GPU of a group.
struct Device {
  std::string group;  // of the platform
  int units = 1;      // on each node: GPUs of the group; cores are one
  int team = 0;       // cores that compute a chunk of a share together; 0: what plans do unasked
  std::int64_t most_samples = std::numeric_limits<std::int64_t>::max();  // that memory holds
  // Samples that memory holds where no gradients are exchanged, so that nothing has to be kept for
  // sending; most_samples or more.
  std::int64_t most_alone = 0;
  // Each unit holds gradients of its own that are exchanged: a GPU. Cores share a GPU's.
  bool own_gradients = false;
  // Plans may use it. Otherwise only the bound reckons with it, as a device of the platform.
  bool offered = true;
  std::vector<DeviceState> states;  // one at least; the first is full speed
};

// Nodes that are alike.
struct NodeKind {
  std::string name;  // of the platform's entry
  std::int64_t count = 1;
  std::vector<Device> devices;
  double idle_watts = 0;    // of all its devices at full speed, while the node takes part
  double unused_watts = 0;  // of the node while it does not; at most idle_watts
  double link_bandwidth = std::numeric_limits<double>::infinity();  // bytes a second, each way
  int domain = 0;                                                   // in Problem::domains
  double money_per_s = 0;   // while the node takes part: rent, or loss of value
  double least_rent_s = 0;  // a rented node is paid for so long at least
  bool pays_energy = true;  // its joules cost money; of a rented one they are in the rent
};

// A part of the network behind one uplink: a site or a switch with what hangs below it.
struct Domain {
  std::string name;
  int parent = -1;                                                    // -1: none, and no uplink
  double uplink_bandwidth = std::numeric_limits<double>::infinity();  // bytes a second, each way
};

// Consecutive operators; a stage of a pipeline is made of whole segments.
struct SegmentTraffic {
  double gradient_bytes = 0;
  double border_bytes = 0;  // of a sample's values that the next segment reads
  double ready = 1;         // part of a device's compute time after which its gradients are there
};

// What it takes to bring gradients together.
struct ExchangeCost {
  double message_s = 0;  // for all rounds of messages, however small; pieces go side by side
  double byte_s = 0;
};

// Nodes of one kind that are used alike.
struct NodeUse {
  int kind = 0;  // in Problem::nodes
  std::int64_t nodes = 1;
  struct Part {
    int units = 0;  // of the device that take part, on each node
    int state = 0;
    auto operator<=>(const Part&) const = default;
  };
  std::vector<Part> parts;  // by device
  auto operator<=>(const NodeUse&) const = default;
};

struct Problem {
  // Samples of a group where batch norm works on groups, else 1. All other counts of samples in a
  // Problem are counts of groups then: shares and chunks are whole groups.
  std::int64_t samples_per_group = 1;
  std::int64_t batch = 1;
  std::int64_t images = 1;  // of the whole run
  std::vector<NodeKind> nodes;
  std::vector<Domain> domains = {Domain{}};
  std::vector<SegmentTraffic> segments = {SegmentTraffic{}};
  double money_per_joule = 0;
  // The cost of exchanging gradients between these nodes. None: star_exchange().
  std::function<ExchangeCost(std::span<const NodeUse>, NodeUpdate)> exchange;

  std::int64_t steps() const { return images / batch + (images % batch != 0 ? 1 : 0); }
  double gradient_bytes() const;
};

enum class Objective { time, energy, edp, cost };
std::string_view objective_name(Objective objective);
Objective objective_named(std::string_view name);  // throws InputError

// What the whole run may take at most.
struct Limits {
  std::optional<double> seconds, joules, money;
  std::optional<double> watts;  // drawn at any time by all nodes together
  bool none() const { return !seconds && !joules && !money && !watts; }
};

// One device alone takes part.
bool alone(std::span<const NodeUse> uses);
// Seconds of the samples of a device in this state.
CostLine share_seconds(const Problem& problem, std::span<const NodeUse> uses,
                       const DeviceState& state);
// Nodes that do not take part, in watts, if none does.
double unused_watts(const Problem& problem);
// The sum over all segments.
CostLine total(std::span<const CostLine> by_segment);

}  // namespace regatta::optimize
