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
std::vector<std::vector<int>> circles_of(const std::vector<Endpoint>& ranks, const Wiring& wiring) {
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

using Circle = std::vector<int>;

int member(const Circle& circle, std::size_t number) { return circle[number % circle.size()]; }
// The member that has a part after the first half of the ring, and the one that owns a piece, which
// has some of it by then.
int holder_of(const Circle& circle, std::size_t part) {
  return member(circle, part + circle.size() - 1);
}
int owner_of(const Circle& circle, std::size_t piece, std::size_t pieces) {
  return holder_of(circle, piece * circle.size() / pieces);
}

// All circles at the same time: one half of a ring of all members, in which part p of the bucket
// comes to lie at member p - 1, or is sent from there to all. Smaller circles, which are done in
// fewer rounds, send less in each: what comes next waits for the largest anyway.
Round half_rings(const std::vector<Circle>& circles) {
  const std::size_t largest = std::ranges::max(circles, {}, &Circle::size).size();
  Round round{{}, static_cast<int>(largest - 1)};
  for (const Circle& circle : circles) {
    const auto members = static_cast<double>(circle.size());
    for (std::size_t i = 0; i < circle.size() && circle.size() > 1; ++i)
      round.messages.push_back(
          {circle[i], member(circle, i + 1), (members - 1) / members / round.times});
  }
  return round;
}

// From the members that have the parts of a circle's ring to the owners of pieces. There are no
// more pieces than parts.
Round parts_to_pieces(const std::vector<Circle>& circles, std::size_t pieces) {
  Round round;
  for (const Circle& circle : circles) {
    const std::size_t parts = circle.size();  // one is `pieces` units long, and a piece `parts`
    const auto units = static_cast<double>(parts * pieces);
    for (std::size_t piece = 0; piece < pieces; ++piece)
      for (std::size_t part = piece * parts / pieces; part * pieces < (piece + 1) * parts; ++part) {
        const int from = holder_of(circle, part), to = owner_of(circle, piece, pieces);
        const std::size_t common = std::min((part + 1) * pieces, (piece + 1) * parts) -
                                   std::max(part * pieces, piece * parts);
        if (from != to) round.messages.push_back({from, to, static_cast<double>(common) / units});
      }
  }
  return round;
}

void add_hierarchy(Exchange& exchange, const std::vector<Circle>& circles) {
  const std::size_t pieces = std::ranges::min(circles, {}, &Circle::size).size();
  const Round rings = half_rings(circles);
  const Round there = parts_to_pieces(circles, pieces);
  Round between{{}, 2 * static_cast<int>(circles.size() - 1)}, back;
  for (std::size_t piece = 0; piece < pieces && circles.size() > 1; ++piece)
    for (std::size_t c = 0; c < circles.size(); ++c) {
      const Circle &from = circles[c], &to = circles[(c + 1) % circles.size()];
      between.messages.push_back({owner_of(from, piece, pieces), owner_of(to, piece, pieces),
                                  1.0 / static_cast<double>(pieces * circles.size())});
    }
  for (const Message& each : there.messages)
    back.messages.push_back({each.to, each.from, each.share});
  exchange.rounds = {rings, there, between, back, rings};
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
      add_hierarchy(exchange, circles_of(ranks, wiring));
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
