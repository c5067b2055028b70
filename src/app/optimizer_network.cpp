#include "app/optimizer_network.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "platform/wiring.h"
#include "sim/exchange.h"

namespace regatta::app {
namespace {

// Switches that stand alone, each a domain below the one above it; roots are below domain 0.
void add_domains(optimize::Problem& problem, const Platform& platform) {
  const NetworkSpec& network = platform.network;
  problem.domains = {{"all", -1}};
  std::map<std::string, int> domain_of;  // by switch
  std::map<std::string, const Switch*> by_name;
  for (const Switch& each : network.switches) by_name[each.name] = &each;
  const auto nearest = [&](std::string name) {
    while (!name.empty() && by_name.at(name)->count > 1) name = by_name.at(name)->parent;
    return name;
  };
  for (const Switch& each : network.switches) {
    if (each.count > 1) continue;
    domain_of[each.name] = static_cast<int>(problem.domains.size());
    optimize::Domain domain{each.name, 0};
    if (!each.parent.empty()) {
      domain.uplink_bandwidth = each.link.bandwidth * each.uplinks;
    } else if (!network.sites.empty()) {
      domain.uplink_bandwidth = 0;
      for (const SiteLink& site : network.sites)
        if (site.first == each.name || site.second == each.name)
          domain.uplink_bandwidth += site.link.bandwidth;
    }
    problem.domains.push_back(std::move(domain));
  }
  for (const Switch& each : network.switches)
    if (each.count == 1 && !each.parent.empty()) {
      const std::string above = nearest(each.parent);
      problem.domains[static_cast<std::size_t>(domain_of[each.name])].parent =
          above.empty() ? 0 : domain_of[above];
    }
  for (std::size_t k = 0; k < platform.nodes.size(); ++k) {
    if (platform.nodes[k].attached.empty()) continue;
    const std::string above = nearest(platform.nodes[k].attached);
    problem.nodes[k].domain = above.empty() ? 0 : domain_of[above];
  }
}

double bandwidth_of_node(const Platform& platform, const PlatformNode& node) {
  const NetworkSpec& network = platform.network;
  if (network.topology == Topology::routes) {
    std::set<std::string> links;
    for (const Route& route : network.routes)
      if (route.first == node.name || route.second == node.name)
        links.insert(route.links.begin(), route.links.end());
    double sum = 0;
    for (const NamedLink& link : network.links)
      if (links.contains(link.name)) sum += link.link.bandwidth;
    return sum;
  }
  const double own = node.link.value_or(network.link).bandwidth;
  if (network.topology != Topology::ring) return own;
  // A ring's node has a link to either side: its own and that of the node before it.
  double widest = own;
  for (const PlatformNode& each : platform.nodes)
    widest = std::max(widest, each.link.value_or(network.link).bandwidth);
  return own + widest;
}

// Remembers what it was asked.
class WiredExchange {
 public:
  explicit WiredExchange(const Platform& platform) : wiring_(platform) {
    int first = 0;
    for (const PlatformNode& node : platform.nodes) {
      first_.push_back(first);
      first += node.count;
      std::vector<int> gpus;
      int next = 0;
      for (const PlatformGroup& group : node.groups) {
        const bool gpu = group.kind == DeviceKind::cuda;
        gpus.push_back(gpu ? next : -1);
        if (gpu) next += group.count;
      }
      gpus_.push_back(std::move(gpus));
    }
  }

  optimize::ExchangeCost cost(std::span<const optimize::NodeUse> uses, NodeUpdate update) {
    const auto [known, fresh] =
        known_.try_emplace({std::vector<optimize::NodeUse>(uses.begin(), uses.end()), update});
    if (fresh) known->second = cost_of(uses, update);
    return known->second;
  }

 private:
  // Where gradients are: in the memory of each GPU, or of a node whose cores alone compute.
  std::vector<Endpoint> ends_of(std::span<const optimize::NodeUse> uses) const {
    std::vector<Endpoint> ends;
    std::vector<int> taken(first_.size(), 0);  // nodes, by kind
    for (const optimize::NodeUse& use : uses) {
      const auto kind = static_cast<std::size_t>(use.kind);
      for (std::int64_t i = 0; i < use.nodes; ++i) {
        const int node = first_[kind] + taken[kind]++;
        const std::size_t before = ends.size();
        for (std::size_t d = 0; d < use.parts.size(); ++d)
          for (int unit = 0; unit < use.parts[d].units && gpus_[kind][d] >= 0; ++unit)
            ends.push_back({node, gpus_[kind][d] + unit});
        if (ends.size() == before) ends.push_back({node, -1});
      }
    }
    return ends;
  }

  optimize::ExchangeCost cost_of(std::span<const optimize::NodeUse> uses, NodeUpdate update) const {
    const sim::Exchange exchange = sim::make_exchange(update, ends_of(uses), wiring_);
    optimize::ExchangeCost cost;
    for (const sim::Round& round : exchange.rounds) {
      std::map<int, double> loads;  // shares of a bucket, by wire
      double latency = 0;
      for (const sim::Message& message : round.messages) {
        const std::vector<int> route =
            wiring_.route(exchange.ends[static_cast<std::size_t>(message.from)],
                          exchange.ends[static_cast<std::size_t>(message.to)]);
        for (const int wire : route) loads[wire] += message.share;
        latency = std::max(latency, wiring_.latency(route));
      }
      double byte_s = 0;
      for (const auto& [wire, share] : loads)
        byte_s =
            std::max(byte_s, share / wiring_.wires()[static_cast<std::size_t>(wire)].bandwidth);
      cost.message_s += round.times * latency;
      cost.byte_s += round.times * byte_s;
    }
    return cost;
  }

  Wiring wiring_;
  std::vector<int> first_;              // by kind: its first node
  std::vector<std::vector<int>> gpus_;  // by kind and group: its first GPU on the node; -1: cores
  std::map<std::pair<std::vector<optimize::NodeUse>, NodeUpdate>, optimize::ExchangeCost> known_;
};

}  // namespace

void add_network(optimize::Problem& problem, const Platform& platform) {
  if (platform.node_count() > 1) {
    add_domains(problem, platform);
    for (std::size_t k = 0; k < platform.nodes.size(); ++k)
      problem.nodes[k].link_bandwidth = bandwidth_of_node(platform, platform.nodes[k]);
  }
  problem.exchange = [wired = std::make_shared<WiredExchange>(platform)](
                         std::span<const optimize::NodeUse> uses, NodeUpdate update) {
    return wired->cost(uses, update);
  };
}

}  // namespace regatta::app
