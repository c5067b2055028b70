#include "plan/rank_nodes.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace regatta {
namespace {

bool is_called(const std::string& host, const std::string& name) {
  return host == name || host.starts_with(name + ".");
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::vector<std::int64_t> capacities(const Plan& plan) {
  std::vector<std::int64_t> sizes;
  for (const Chunk& chunk : chunks_of(plan)) sizes.push_back(chunk.capacity);
  return sizes;
}

}  // namespace

RankNodes nodes_of_ranks(const Plan& plan, const std::vector<std::string>& hosts) {
  const std::size_t count = plan.nodes.size();
  if (hosts.size() != count)
    throw InputError("the plan is for " + counted(count, "node") + ", and " +
                     counted(hosts.size(), "rank") + (hosts.size() == 1 ? " was" : " were") +
                     " started: " +
                     (count == 1 ? std::string("start it without a launcher")
                                 : "start " + std::to_string(count) + ", such as by mpirun -n " +
                                       std::to_string(count)));
  std::map<std::string, std::vector<std::size_t>> named;  // nodes by name
  for (std::size_t n = 0; n < count; ++n) named[plan.nodes[n].name].push_back(n);
  RankNodes found;
  std::map<std::string, std::size_t> ranks_on;  // by the node's name
  std::string stranger;                         // a host without a node
  for (const std::string& host : hosts) {
    const auto node =
        std::ranges::find_if(named, [&](const auto& each) { return is_called(host, each.first); });
    if (node == named.end()) {
      stranger = host;
      continue;
    }
    found.by_host = true;
    const std::size_t local = ranks_on[node->first]++;
    if (local < node->second.size()) found.nodes.push_back(node->second[local]);
  }
  if (!found.by_host) {
    for (std::size_t n = 0; n < count; ++n) found.nodes.push_back(n);
    return found;
  }
  for (const auto& [name, nodes] : named)
    if (ranks_on[name] != nodes.size())
      throw InputError("the plan has " + counted(nodes.size(), "node") + " named '" + name +
                       "', but " + counted(ranks_on[name], "rank") +
                       (ranks_on[name] == 1 ? " runs" : " run") + " on a host of that name" +
                       (stranger.empty() ? "" : ", and one on '" + stranger + "'"));
  return found;
}

Plan in_rank_order(const Plan& plan, const RankNodes& ranks) {
  Plan ordered = plan;
  for (std::size_t r = 0; r < ranks.nodes.size(); ++r)
    ordered.nodes[r] = plan.nodes[ranks.nodes[r]];
  if (plan.deterministic && capacities(ordered) != capacities(plan))
    throw InputError(
        "the plan is deterministic, and its chunks are added in the order of its nodes: start the "
        "ranks in that order");
  return ordered;
}

std::vector<std::string> rank_hindrances(const Plan& plan) {
  std::vector<std::string> found;
  if (!plan.stages.empty()) found.emplace_back("it has stages, which can only be simulated");
  if (plan.placement == Placement::fixed)
    found.emplace_back("placement static is for one process: use dynamic or hybrid");
  if (plan.update == NodeUpdate::server_gpu)
    found.emplace_back("update server:gpu can only be simulated: use server:cpu");
  if (plan.deterministic && plan.update != NodeUpdate::chain)
    found.push_back("update " + std::string(node_update_name(plan.update)) +
                    " adds in an order that depends on the ranks, so it cannot be deterministic: "
                    "use chain");
  for (const PlanNode& node : plan.nodes)
    if (node.groups.size() > 1)
      found.push_back("node '" + node.name + "' has " + std::to_string(node.groups.size()) +
                      " device groups, and a rank has one: plan with --devices cpu or cuda");
  return found;
}

}  // namespace regatta
