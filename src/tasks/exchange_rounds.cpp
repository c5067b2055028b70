#include "tasks/exchange_rounds.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace regatta {
namespace {

using Kind = Transfer::Kind;
using Rounds = std::vector<ExchangeRound>;

// Everyone sends one n-th of the bucket to the next in each of 2(n - 1) rounds: first what is to be
// added, until each has the sum of one n-th, then the sums.
void add_ring(Rounds& rounds, const std::vector<int>& members, int rank, std::size_t elements,
              int first_message) {
  const int count = static_cast<int>(members.size());
  const auto found = std::ranges::find(members, rank);
  if (count < 2 || found == members.end()) return;
  const int own = static_cast<int>(found - members.begin());
  const auto member = [&](int i) { return members[static_cast<std::size_t>(i % count)]; };
  const int next = member(own + 1), before = member(own + count - 1);
  const auto transfer = [&](Kind kind, int peer, int message, int piece) {
    const auto number = static_cast<std::size_t>((piece % count + count) % count);
    const std::size_t parts = members.size();
    const std::size_t first = elements * number / parts;
    return Transfer{kind, peer, message, first, elements * (number + 1) / parts - first};
  };
  for (int k = 0; k + 1 < count; ++k)
    rounds.push_back({transfer(Kind::send, next, first_message + k, own - k),
                      transfer(Kind::add, before, first_message + k, own - k - 1)});
  for (int k = 0; k + 1 < count; ++k) {
    const int message = first_message + count - 1 + k;
    rounds.push_back({transfer(Kind::send, next, message, own + 1 - k),
                      transfer(Kind::receive, before, message, own - k)});
  }
}

// Up a binary tree and down again.
void add_tree(Rounds& rounds, int rank, int ranks, std::size_t elements) {
  const auto children = [&](Kind kind, int message) {
    ExchangeRound round;
    for (const int child : {2 * rank + 1, 2 * rank + 2})
      if (child < ranks) round.push_back({kind, child, message, 0, elements});
    return round;
  };
  rounds.push_back(children(Kind::add, 0));
  if (rank > 0) {
    rounds.push_back({{Kind::send, (rank - 1) / 2, 0, 0, elements}});
    rounds.push_back({{Kind::receive, (rank - 1) / 2, 1, 0, elements}});
  }
  rounds.push_back(children(Kind::send, 1));
}

void add_server(Rounds& rounds, int rank, const std::vector<int>& members, std::size_t elements,
                int to_server, int from_server, Rounds between = {}) {
  const int server = members.front();
  if (rank != server) {
    rounds.push_back({{Kind::send, server, to_server, 0, elements}});
    rounds.push_back({{Kind::receive, server, from_server, 0, elements}});
    return;
  }
  ExchangeRound in, out;
  for (const int member : members) {
    if (member == server) continue;
    in.push_back({Kind::add, member, to_server, 0, elements});
    out.push_back({Kind::send, member, from_server, 0, elements});
  }
  rounds.push_back(std::move(in));
  std::ranges::move(between, std::back_inserter(rounds));
  rounds.push_back(std::move(out));
}

// Inside each site to its first rank, in a ring among those, and back.
void add_hierarchy(Rounds& rounds, const RankPlace& place, std::size_t elements) {
  std::map<int, std::vector<int>> sites;
  for (int rank = 0; rank < place.ranks; ++rank)
    sites[place.sites[static_cast<std::size_t>(rank)]].push_back(rank);
  std::vector<int> leaders;
  for (const auto& [site, members] : sites) leaders.push_back(members.front());
  Rounds between;
  add_ring(between, leaders, place.rank, elements, 2);
  add_server(rounds, place.rank, sites[place.sites[static_cast<std::size_t>(place.rank)]], elements,
             0, 1, std::move(between));
}

}  // namespace

std::vector<ExchangeRound> exchange_rounds(const RankPlace& place, std::size_t elements) {
  std::vector<int> all(static_cast<std::size_t>(place.ranks));
  std::iota(all.begin(), all.end(), 0);
  const int last = place.ranks - 1;
  Rounds rounds;
  switch (place.update) {
    case NodeUpdate::ring:
      add_ring(rounds, all, place.rank, elements, 0);
      break;
    case NodeUpdate::tree:
      add_tree(rounds, place.rank, place.ranks, elements);
      break;
    case NodeUpdate::hierarchical:
      add_hierarchy(rounds, place, elements);
      break;
    case NodeUpdate::server_cpu:
    case NodeUpdate::server_gpu:
      add_server(rounds, place.rank, all, elements, 0, 1);
      break;
    case NodeUpdate::replicated: {
      ExchangeRound& round = rounds.emplace_back();
      for (const int peer : all) {
        if (peer == place.rank) continue;
        round.push_back({Kind::send, peer, 0, 0, elements});
        round.push_back({Kind::add, peer, 0, 0, elements});
      }
      break;
    }
    case NodeUpdate::chain:
      if (place.rank < last) {
        rounds.push_back({{Kind::send, place.rank + 1, 0, 0, elements}});
        rounds.push_back({{Kind::receive, last, 1, 0, elements}});
      } else {
        ExchangeRound& round = rounds.emplace_back();
        for (int peer = 0; peer < last; ++peer) round.push_back({Kind::send, peer, 1, 0, elements});
      }
      break;
    case NodeUpdate::mpi:
      break;
  }
  for (ExchangeRound& round : rounds)
    std::erase_if(round, [](const Transfer& each) { return each.count == 0; });
  std::erase_if(rounds, [](const ExchangeRound& round) { return round.empty(); });
  return rounds;
}

std::vector<ExchangeRound> running_sum_rounds(const RankPlace& place, std::size_t elements) {
  if (place.rank == 0) return {};
  return {{{Kind::receive, place.rank - 1, 0, 0, elements}}};
}

int most_messages(const RankPlace& place) { return 2 * place.ranks + 2; }

}  // namespace regatta
