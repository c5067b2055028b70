#include "sim/exchange.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace regatta::sim {
namespace {

Round ring_round(const std::vector<int>& members) {
  const int count = static_cast<int>(members.size());
  Round round{{}, 2 * (count - 1)};
  for (int i = 0; i < count; ++i)
    round.messages.push_back({members[static_cast<std::size_t>(i)],
                              members[static_cast<std::size_t>((i + 1) % count)], 1.0 / count});
  return round;
}

void add_tree(Exchange& exchange, int count) {
  // Ranks of one depth send in one round, the deepest first.
  std::vector<Round> up;
  for (int first = 0; first < count; first = 2 * first + 1) {
    const int last = std::min(2 * first, count - 1);
    if (first == 0) continue;
    Round round;
    for (int rank = first; rank <= last; ++rank)
      round.messages.push_back({rank, (rank - 1) / 2, 1});
    up.push_back(std::move(round));
  }
  exchange.rounds.assign(up.rbegin(), up.rend());
  for (Round& round : up) {
    for (Message& message : round.messages) std::swap(message.from, message.to);
    exchange.rounds.push_back(std::move(round));
  }
}

void add_server(Exchange& exchange, int ranks, int server) {
  Round in, out;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == server) continue;
    in.messages.push_back({rank, server, 1});
    out.messages.push_back({server, rank, 1});
  }
  exchange.rounds = {in, out};
}

void add_replicated(Exchange& exchange, int ranks) {
  Round round;
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      if (from != to) round.messages.push_back({from, to, 1});
  exchange.rounds = {round};
}

void add_chain(Exchange& exchange, int ranks) {
  for (int rank = 0; rank + 1 < ranks; ++rank)
    exchange.rounds.push_back({{{rank, rank + 1, 1}}, 1});
  Round out;
  for (int rank = 0; rank + 1 < ranks; ++rank) out.messages.push_back({ranks - 1, rank, 1});
  exchange.rounds.push_back(out);
}

// Ranks of one node together; where every node has one, those of one switch.
std::vector<std::vector<int>> circles(const std::vector<Endpoint>& ranks, const Wiring& wiring) {
  std::map<int, std::vector<int>> by_node, by_switch;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const int node = ranks[static_cast<std::size_t>(rank)].node;
    by_node[node].push_back(rank);
    by_switch[wiring.neighbourhood(node)].push_back(rank);
  }
  std::vector<std::vector<int>> found;
  for (auto& [place, members] : by_node.size() < ranks.size() ? by_node : by_switch)
    found.push_back(std::move(members));
  return found;
}

void add_hierarchy(Exchange& exchange, const std::vector<std::vector<int>>& groups) {
  Round in, out;
  std::vector<int> leaders;
  for (const std::vector<int>& members : groups) {
    leaders.push_back(members.front());
    for (std::size_t i = 1; i < members.size(); ++i) {
      in.messages.push_back({members[i], members.front(), 1});
      out.messages.push_back({members.front(), members[i], 1});
    }
  }
  exchange.rounds.push_back(in);
  if (leaders.size() > 1) exchange.rounds.push_back(ring_round(leaders));
  exchange.rounds.push_back(out);
}

}  // namespace

Exchange make_exchange(NodeUpdate update, const std::vector<Endpoint>& ranks,
                       const Wiring& wiring) {
  Exchange exchange{ranks, {}};
  const int count = static_cast<int>(ranks.size());
  if (count < 2) return exchange;
  switch (update) {
    case NodeUpdate::replicated:
      add_replicated(exchange, count);
      break;
    case NodeUpdate::chain:
      add_chain(exchange, count);
      break;
    case NodeUpdate::mpi:  // which algorithm it takes is its own affair: at best a ring
    case NodeUpdate::ring: {
      std::vector<int> all(ranks.size());
      std::iota(all.begin(), all.end(), 0);
      exchange.rounds = {ring_round(all)};
      break;
    }
    case NodeUpdate::tree:
      add_tree(exchange, count);
      break;
    case NodeUpdate::hierarchical:
      add_hierarchy(exchange, circles(ranks, wiring));
      break;
    case NodeUpdate::server_gpu:
      add_server(exchange, count, 0);
      break;
    case NodeUpdate::server_cpu: {
      const Endpoint memory{ranks.front().node, -1};
      const auto found = std::ranges::find(ranks, memory);
      const int server = static_cast<int>(found - ranks.begin());
      if (found == ranks.end()) exchange.ends.push_back(memory);
      add_server(exchange, count, server);
      break;
    }
  }
  std::erase_if(exchange.rounds, [](const Round& round) { return round.messages.empty(); });
  return exchange;
}

}  // namespace regatta::sim
