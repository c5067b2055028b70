#include "tasks/exchange_time.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>

namespace regatta {
namespace {

// Rounds of all ranks in time. A round begins when the one before it has ended, and a message
// leaves when its sender's round begins.
class Timing {
 public:
  Timing(std::vector<std::vector<ExchangeRound>> rounds, const RankLinks& links)
      : rounds_(std::move(rounds)), links_(links), ends_(rounds_.size()) {}

  double seconds() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < rounds_.size(); ++rank)
        while (ends_[rank].size() < rounds_[rank].size() && end_next(rank)) moved = true;
    }
    double last = 0;
    for (const std::vector<double>& ends : ends_)
      if (!ends.empty()) last = std::max(last, ends.back());
    return last;
  }

 private:
  double start_of(std::size_t rank, std::size_t round) const {
    return round == 0 ? 0 : ends_[rank][round - 1];
  }

  // When a message leaves, and when all that its sender sends at the same time has left.
  struct Sending {
    double begin = 0, end = 0;
  };
  // None: not known yet.
  std::optional<Sending> sending_of(std::size_t sender, int to, int message) const {
    for (std::size_t round = 0; round <= ends_[sender].size() && round < rounds_[sender].size();
         ++round)
      for (const Transfer& each : rounds_[sender][round])
        if (each.kind == Transfer::Kind::send && each.peer == to && each.message == message)
          return Sending{start_of(sender, round),
                         start_of(sender, round) + sending_seconds(sender, round)};
    return std::nullopt;
  }
  double sending_seconds(std::size_t rank, std::size_t round) const {
    double seconds = 0;
    for (const Transfer& each : rounds_[rank][round])
      if (each.kind == Transfer::Kind::send) seconds += duration(rank, each);
    return seconds;
  }

  double duration(std::size_t rank, const Transfer& each) const {
    return static_cast<double>(each.count * sizeof(float)) /
           links_[rank][static_cast<std::size_t>(each.peer)].bandwidth;
  }

  bool end_next(std::size_t rank) {
    const std::size_t round = ends_[rank].size();
    const double start = start_of(rank, round);
    double end = start + sending_seconds(rank, round);
    // Messages to this rank share its link from the moment the first of them begins to arrive.
    double receiving = 0, first = std::numeric_limits<double>::infinity();
    for (const Transfer& each : rounds_[rank][round]) {
      if (each.kind == Transfer::Kind::send) continue;
      const auto sending =
          sending_of(static_cast<std::size_t>(each.peer), static_cast<int>(rank), each.message);
      if (!sending) return false;
      const double latency = links_[rank][static_cast<std::size_t>(each.peer)].latency;
      const double begin = std::max(sending->begin, start) + latency;
      receiving += duration(rank, each);
      first = std::min(first, begin);
      end = std::max({end, sending->end + latency, begin + duration(rank, each)});
    }
    ends_[rank].push_back(receiving > 0 ? std::max(end, first + receiving) : end);
    return true;
  }

  std::vector<std::vector<ExchangeRound>> rounds_;
  const RankLinks& links_;
  std::vector<std::vector<double>> ends_;  // by rank and round, as far as known
};

}  // namespace

double exchange_seconds(NodeUpdate update, const std::vector<int>& sites, const RankLinks& links,
                        double bytes) {
  RankPlace place;
  place.ranks = static_cast<int>(sites.size());
  place.sites = sites;
  place.update = update;
  // In a hierarchy all members of a site send to other sites at the same time, over one uplink.
  RankLinks shared = links;
  if (update == NodeUpdate::hierarchical) {
    std::map<int, int> members;
    for (const int site : sites) ++members[site];
    const int sending = std::ranges::min(members | std::views::values);
    for (std::size_t rank = 0; rank < sites.size(); ++rank)
      for (std::size_t other = 0; other < sites.size(); ++other)
        if (sites[rank] != sites[other]) shared[rank][other].bandwidth /= sending;
  }
  std::vector<std::vector<ExchangeRound>> rounds;
  const auto elements = static_cast<std::size_t>(bytes / sizeof(float));
  for (place.rank = 0; place.rank < place.ranks; ++place.rank) {
    rounds.push_back(update == NodeUpdate::chain ? running_sum_rounds(place, elements)
                                                 : std::vector<ExchangeRound>{});
    for (ExchangeRound& round : exchange_rounds(place, elements))
      rounds.back().push_back(std::move(round));
  }
  return Timing(std::move(rounds), shared).seconds();
}

double exchange_bound(const std::vector<int>& sites, const RankLinks& links, double bytes) {
  std::map<int, double> out_of_site;  // bandwidth of the fastest link to another site, by site
  double bound = 0, together = 0;
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    double own = 0;
    for (std::size_t other = 0; other < links.size(); ++other) {
      if (other == rank) continue;
      own = std::max(own, links[rank][other].bandwidth);
      if (sites[rank] == sites[other]) continue;
      double& out = out_of_site[sites[rank]];
      out = std::max(out, links[rank][other].bandwidth);
    }
    bound = std::max(bound, bytes / own);
    together += own;
  }
  for (const auto& [site, bandwidth] : out_of_site) bound = std::max(bound, bytes / bandwidth);
  return std::max(bound, 2 * static_cast<double>(links.size() - 1) * bytes / together);
}

NodeUpdate fastest_update(const std::vector<int>& sites, const RankLinks& links,
                          const std::vector<double>& bucket_bytes) {
  const std::set<int> different(sites.begin(), sites.end());
  std::vector<NodeUpdate> ways{NodeUpdate::ring, NodeUpdate::replicated, NodeUpdate::tree,
                               NodeUpdate::server_cpu};
  if (different.size() > 1 && different.size() < sites.size())
    ways.push_back(NodeUpdate::hierarchical);
  NodeUpdate best = NodeUpdate::ring;
  double shortest = std::numeric_limits<double>::infinity();
  for (const NodeUpdate way : ways) {
    double seconds = 0;
    for (const double bytes : bucket_bytes) seconds += exchange_seconds(way, sites, links, bytes);
    if (seconds >= shortest) continue;
    shortest = seconds;
    best = way;
  }
  return best;
}

std::vector<int> sites_of(const std::vector<int>& machines, const RankLinks& links) {
  const std::set<int> different(machines.begin(), machines.end());
  if (different.size() < machines.size()) return machines;
  // A link belongs to a site if it has half the bandwidth of the fastest of either end.
  const std::size_t ranks = machines.size();
  const auto fastest = [&](std::size_t rank) {
    double most = 0;
    for (std::size_t other = 0; other < ranks; ++other)
      if (other != rank) most = std::max(most, links[rank][other].bandwidth);
    return most;
  };
  std::vector<int> sites(ranks);
  int next = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    sites[rank] = -1;
    for (std::size_t other = 0; other < rank && sites[rank] < 0; ++other)
      if (2 * links[rank][other].bandwidth >= std::max(fastest(rank), fastest(other)))
        sites[rank] = sites[other];
    if (sites[rank] < 0) sites[rank] = next++;
  }
  return sites;
}

}  // namespace regatta
