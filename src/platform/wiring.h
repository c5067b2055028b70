// A platform's links one by one, and which of them a message takes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "platform/platform.h"

namespace regatta {

// One direction of a link. What goes the other way does not slow it down.
struct Wire {
  // Nodes, switches, hubs, GPUs: "new-3" and "rack-0". Of a link whose ends the platform does not
  // tell, `from` is its name and `to` is empty.
  std::string from, to;
  double bandwidth = 0;  // bytes a second, shared evenly by the messages on it
  double latency = 0;
};

// A memory: a node's own, or that of one of its GPUs.
struct Endpoint {
  int node = 0;  // counted over all nodes, as they stand in the file, each `count` times
  int gpu = -1;  // counted over the node's GPU groups; -1: the node's own memory
  auto operator<=>(const Endpoint&) const = default;
};

class Wiring {
 public:
  explicit Wiring(const Platform& platform);

  struct NodeCopy {
    int entry = 0;  // in Platform::nodes
    int copy = 0;   // of its count
  };
  int nodes() const { return static_cast<int>(places_.size()); }
  NodeCopy place(int node) const { return places_[static_cast<std::size_t>(node)]; }
  std::string node_name(int node) const;
  const PlatformNode& node(int node) const;
  // The switch a node is attached to; nodes of a star or a ring are all alike.
  int neighbourhood(int node) const {
    return attached_.empty() ? 0 : attached_[static_cast<std::size_t>(node)];
  }

  // Switches one by one, as neighbourhood() counts them.
  struct SwitchCopy {
    std::string name, parent;  // no parent: a root
    const Switch* spec = nullptr;
  };
  std::vector<SwitchCopy> switches() const;
  // The switches above a node, from the root to the one it is attached to; none in a star or a
  // ring.
  std::vector<std::string> switches_above(int node) const;

  const std::vector<Wire>& wires() const { return wires_; }
  // Wires in the order a message meets them; none from a memory to itself.
  std::vector<int> route(Endpoint from, Endpoint to) const;
  double latency(const std::vector<int>& route) const;

 private:
  struct Duplex {  // the same link both ways
    int up = -1, down = -1;
  };
  struct Joint {  // a switch
    std::string name;
    int parent = -1;
    std::vector<Duplex> uplinks;
  };
  struct Device {
    int to = -1, from = -1, hub = -1;
  };
  struct Inside {
    std::vector<Device> gpus;
    std::vector<Duplex> hubs;
  };

  int wire(const std::string& from, const std::string& to, double bandwidth, double latency);
  Duplex duplex(const std::string& below, const std::string& above, const LinkSpeed& link);
  Inside inside_of(const PlatformNode& node, const std::string& name);
  void join_star();
  void join_ring();
  void join_switches();
  void join_routes();
  std::vector<int> between_nodes(int from, int to) const;
  std::vector<int> by_ring(int from, int to) const;
  std::vector<int> by_switches(int from, int to) const;
  std::vector<int> between_roots(int from, int to) const;

  const Platform platform_;
  std::vector<NodeCopy> places_;
  std::vector<Wire> wires_;
  std::vector<Inside> insides_;  // by node
  std::vector<Duplex> own_;      // by node: its link to the switch, or to the next node of a ring
  std::vector<int> attached_;    // by node: the joint
  std::vector<Joint> joints_;
  Duplex backbone_;
  struct RootLink {
    int other = 0, wire = 0;
  };
  std::map<int, std::vector<RootLink>> root_links_;
  std::map<std::pair<int, int>, std::vector<int>> listed_;  // by nodes
};

}  // namespace regatta
