#include "tasks/exchange_rounds.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace regatta {
namespace {

using Kind = Transfer::Kind;
using Rounds = std::vector<ExchangeRound>;

// Elements of a bucket.
struct Range {
  std::size_t first = 0, count = 0;
};

// One of so many equal parts.
Range part_of(const Range& whole, int part, int parts) {
  const auto number = static_cast<std::size_t>(part), of = static_cast<std::size_t>(parts);
  const std::size_t first = whole.count * number / of;
  return {whole.first + first, whole.count * (number + 1) / of - first};
}

enum class RingHalf { sums, results };

// Everyone sends one n-th of the range to the next in each of n - 1 rounds. With `sums` it is to be
// added; member i then has the sum of part i + 1. With `results` these sums are passed on until all
// have all of them.
void add_half_ring(Rounds& rounds, RingHalf half, const std::vector<int>& members, int rank,
                   const Range& range, int first_message) {
  const int count = static_cast<int>(members.size());
  const auto found = std::ranges::find(members, rank);
  if (count < 2 || found == members.end()) return;
  const int own = static_cast<int>(found - members.begin());
  const auto member = [&](int i) { return members[static_cast<std::size_t>(i % count)]; };
  const int next = member(own + 1), before = member(own + count - 1);
  const auto transfer = [&](Kind kind, int peer, int message, int part) {
    const auto [first, elements] = part_of(range, (part % count + count) % count, count);
    return Transfer{kind, peer, message, first, elements};
  };
  for (int k = 0; k + 1 < count; ++k) {
    if (half == RingHalf::sums) {
      rounds.push_back({transfer(Kind::send, next, first_message + k, own - k),
                        transfer(Kind::add, before, first_message + k, own - k - 1)});
    } else {
      const int message = first_message + count - 1 + k;
      rounds.push_back({transfer(Kind::send, next, message, own + 1 - k),
                        transfer(Kind::receive, before, message, own - k)});
    }
  }
}

void add_ring(Rounds& rounds, const std::vector<int>& members, int rank, const Range& range,
              int first_message) {
  for (const RingHalf half : {RingHalf::sums, RingHalf::results})
    add_half_ring(rounds, half, members, rank, range, first_message);
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
                int to_server, int from_server) {
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
  rounds.push_back(std::move(out));
}

// A ring inside each site leaves every member with the sum of one part. There are as many pieces as
// the smallest site has members. Each piece has one owner in every site, and its owners add it up
// in a ring. Then all goes back the way it came.
void add_hierarchy(Rounds& rounds, const RankPlace& place, std::size_t elements) {
  std::map<int, std::vector<int>> sites;
  for (int rank = 0; rank < place.ranks; ++rank)
    sites[place.sites[static_cast<std::size_t>(rank)]].push_back(rank);
  int pieces = place.ranks;
  for (const auto& [site, members] : sites)
    pieces = std::min(pieces, static_cast<int>(members.size()));
  const Range all{0, elements};
  const std::vector<int>& home = sites[place.sites[static_cast<std::size_t>(place.rank)]];
  const int parts = static_cast<int>(home.size());
  // The member that has a part after the ring, and the owner of a piece, which has some of it then.
  const auto holder = [](const std::vector<int>& members, std::size_t part) {
    return members[(part + members.size() - 1) % members.size()];
  };
  const auto owner = [&](const std::vector<int>& members, int piece) {
    return holder(members, static_cast<std::size_t>(piece) * members.size() /
                               static_cast<std::size_t>(pieces));
  };

  add_half_ring(rounds, RingHalf::sums, home, place.rank, all, 0);
  // Where a site has more members than there are pieces, parts are smaller than pieces.
  ExchangeRound there, back;
  for (int part = 0; part < parts; ++part)
    for (int piece = 0; piece < pieces; ++piece) {
      const int from = holder(home, static_cast<std::size_t>(part)), to = owner(home, piece);
      if (from == to || (from != place.rank && to != place.rank)) continue;
      const Range one = part_of(all, part, parts), other = part_of(all, piece, pieces);
      const std::size_t first = std::max(one.first, other.first);
      const std::size_t end = std::min(one.first + one.count, other.first + other.count);
      if (first >= end) continue;
      const int message = 2 * place.ranks;
      const bool mine = from == place.rank;
      there.push_back(
          {mine ? Kind::send : Kind::receive, mine ? to : from, message, first, end - first});
      back.push_back(
          {mine ? Kind::receive : Kind::send, mine ? to : from, message + 1, first, end - first});
    }
  rounds.push_back(std::move(there));
  for (int piece = 0; piece < pieces; ++piece) {
    std::vector<int> owners;
    for (const auto& [site, members] : sites) owners.push_back(owner(members, piece));
    add_ring(rounds, owners, place.rank, part_of(all, piece, pieces), 0);
  }
  rounds.push_back(std::move(back));
  add_half_ring(rounds, RingHalf::results, home, place.rank, all, 0);
}

}  // namespace

std::vector<ExchangeRound> exchange_rounds(const RankPlace& place, std::size_t elements) {
  std::vector<int> all(static_cast<std::size_t>(place.ranks));
  std::iota(all.begin(), all.end(), 0);
  const int last = place.ranks - 1;
  Rounds rounds;
  switch (place.update) {
    case NodeUpdate::ring:
      add_ring(rounds, all, place.rank, {0, elements}, 0);
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
