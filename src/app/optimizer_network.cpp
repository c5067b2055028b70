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
      int gpus = -1;
      for (const PlatformGroup& group : node.groups)
        if (group.kind == DeviceKind::cuda) gpus = 0;
      memory_.push_back(gpus);
    }
  }

  optimize::ExchangeCost cost(std::span<const optimize::NodeUse> uses, NodeUpdate update) {
    std::vector<std::int64_t> counts(first_.size(), 0);
    for (const optimize::NodeUse& use : uses)
      counts[static_cast<std::size_t>(use.kind)] += use.nodes;
    const auto [known, fresh] = known_.try_emplace({counts, update});
    if (fresh) known->second = cost_of(counts, update);
    return known->second;
  }

 private:
  optimize::ExchangeCost cost_of(const std::vector<std::int64_t>& counts, NodeUpdate update) const {
    std::vector<Endpoint> ends;
    for (std::size_t k = 0; k < counts.size(); ++k)
      for (int i = 0; i < static_cast<int>(counts[k]); ++i)
        ends.push_back({first_[k] + i, memory_[k]});
    const sim::Exchange exchange = sim::make_exchange(update, ends, wiring_);
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
  std::vector<int> first_, memory_;  // by kind: its first node; 0: a GPU's memory, -1: the node's
  std::map<std::pair<std::vector<std::int64_t>, NodeUpdate>, optimize::ExchangeCost> known_;
};

}  // namespace

void add_network(optimize::Problem& problem, const Platform& platform) {
  if (platform.node_count() < 2) return;
  add_domains(problem, platform);
  for (std::size_t k = 0; k < platform.nodes.size(); ++k)
    problem.nodes[k].link_bandwidth = bandwidth_of_node(platform, platform.nodes[k]);
  problem.exchange = [wired = std::make_shared<WiredExchange>(platform)](
                         std::span<const optimize::NodeUse> uses, NodeUpdate update) {
    return wired->cost(uses, update);
  };
}

}  // namespace regatta::app
