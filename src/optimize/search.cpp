#include "optimize/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace regatta::optimize {
namespace {

// Choices are all tried if there are at most so many, times the nodes of the platform: the exchange
// of a choice is priced node by node. More take longer than a second or two.
constexpr double most_tried = 200'000;

using Parts = std::vector<NodeUse::Part>;

// Every way to use a node: units and states of its devices, one unit at least.
std::vector<Parts> ways_to_use(const NodeKind& node) {
  std::vector<Parts> ways{{}};
  for (const Device& device : node.devices) {
    std::vector<Parts> longer;
    for (const Parts& way : ways)
      for (int units = 0; units <= (device.offered ? device.units : 0); ++units)
        for (int state = 0; state < (units > 0 ? static_cast<int>(device.states.size()) : 1);
             ++state) {
          longer.push_back(way);
          longer.back().push_back({units, state});
        }
    ways = std::move(longer);
  }
  std::erase_if(ways, [](const Parts& way) {
    return std::ranges::all_of(way, [](const NodeUse::Part& part) { return part.units == 0; });
  });
  return ways;
}

// Ways to use `count` nodes alike: how many of them each way, or not at all.
double combinations(std::int64_t count, std::size_t ways) {
  double product = 1;
  for (std::size_t i = 1; i <= ways; ++i)
    product *= static_cast<double>(count + static_cast<std::int64_t>(i)) / static_cast<double>(i);
  return product;
}

class Search {
 public:
  Search(const Problem& problem, Objective objective, const Limits& limits, std::size_t keep)
      : problem_(problem), objective_(objective), limits_(limits), keep_(keep) {
    for (const NodeKind& node : problem.nodes) ways_.push_back(ways_to_use(node));
  }

  Found run() {
    double choices = 1, nodes = 0;
    for (std::size_t k = 0; k < ways_.size(); ++k) {
      choices *= combinations(problem_.nodes[k].count, ways_[k].size());
      nodes += static_cast<double>(problem_.nodes[k].count);
    }
    found_.every_choice = choices * nodes <= most_tried;
    if (found_.every_choice) {
      std::vector<NodeUse> uses;
      try_all(0, 0, problem_.nodes.empty() ? 0 : problem_.nodes.front().count, uses);
    } else {
      climb_from_everywhere();
    }
    for (const auto& [rank, choice] : best_) found_.best.push_back(choice);
    return std::move(found_);
  }

 private:
  using Rank = std::tuple<double, double, double, double, std::vector<NodeUse>>;

  // Nodes of kind `k` used the ways from `way` on; `left` of them are not used yet.
  void try_all(std::size_t k, std::size_t way, std::int64_t left, std::vector<NodeUse>& uses) {
    if (k == ways_.size()) {
      take(uses);
      return;
    }
    if (way == ways_[k].size()) {
      try_all(k + 1, 0, k + 1 < ways_.size() ? problem_.nodes[k + 1].count : 0, uses);
      return;
    }
    for (std::int64_t nodes = 0; nodes <= left; ++nodes) {
      if (nodes > 0) uses.push_back({static_cast<int>(k), nodes, ways_[k][way]});
      try_all(k, way + 1, left - nodes, uses);
      if (nodes > 0) uses.pop_back();
    }
  }

  std::optional<Rank> take(const std::vector<NodeUse>& uses) {
    if (uses.empty()) return std::nullopt;
    ++found_.tried;
    const std::optional<Choice> choice = best_shares(problem_, uses, objective_, limits_);
    if (!choice) return std::nullopt;
    Rank rank{excess(problem_, choice->outcome, limits_), value_of(choice->outcome, objective_),
              choice->outcome.step_s, choice->outcome.energy_j, uses};
    best_.emplace(rank, *choice);
    if (best_.size() > keep_) best_.erase(std::prev(best_.end()));
    return rank;
  }

  // For each kind of node: a way to use it, and how many nodes are used.
  struct Position {
    std::vector<std::size_t> way;
    std::vector<std::int64_t> nodes;
    auto operator<=>(const Position&) const = default;
  };

  std::vector<NodeUse> uses_of(const Position& position) const {
    std::vector<NodeUse> uses;
    for (std::size_t k = 0; k < ways_.size(); ++k)
      if (position.nodes[k] > 0)
        uses.push_back({static_cast<int>(k), position.nodes[k], ways_[k][position.way[k]]});
    return uses;
  }

  std::optional<Rank> rank_of(const Position& position) {
    const auto [known, fresh] = seen_.try_emplace(position);
    if (fresh) known->second = take(uses_of(position));
    return known->second;
  }

  void climb_from_everywhere() {
    const std::size_t kinds = ways_.size();
    Position all{std::vector<std::size_t>(kinds, 0), {}};
    for (std::size_t k = 0; k < kinds; ++k) {
      all.way[k] = ways_[k].empty() ? 0 : ways_[k].size() - 1;
      all.nodes.push_back(ways_[k].empty() ? 0 : problem_.nodes[k].count);
    }
    climb(all);
    for (std::size_t k = 0; k < kinds; ++k) {
      if (ways_[k].empty()) continue;
      Position alone{all.way, std::vector<std::int64_t>(kinds, 0)};
      alone.nodes[k] = problem_.nodes[k].count;
      climb(alone);
      alone.nodes[k] = 1;
      climb(alone);
    }
  }

  // To the best neighbour as long as one is better: other numbers of one kind, another way to use
  // it, or a node of one kind instead of one of another.
  void climb(Position position) {
    std::optional<Rank> rank = rank_of(position);
    while (true) {
      Position next = position;
      std::optional<Rank> next_rank = rank;
      const auto consider = [&](const Position& candidate) {
        const std::optional<Rank> its = rank_of(candidate);
        if (its && (!next_rank || *its < *next_rank)) {
          next = candidate;
          next_rank = its;
        }
      };
      for (std::size_t k = 0; k < ways_.size(); ++k) {
        for (const std::int64_t nodes : numbers_near(position.nodes[k], problem_.nodes[k].count)) {
          if (ways_[k].empty()) break;
          Position candidate = position;
          candidate.nodes[k] = nodes;
          consider(candidate);
          for (std::size_t other = 0; other < ways_.size(); ++other) {
            if (other == k || candidate.nodes[other] == 0 || nodes != position.nodes[k] + 1)
              continue;
            Position exchanged = candidate;
            --exchanged.nodes[other];
            consider(exchanged);
          }
        }
        for (std::size_t way = 0; way < ways_[k].size() && position.nodes[k] > 0; ++way) {
          Position candidate = position;
          candidate.way[k] = way;
          consider(candidate);
        }
      }
      if (next == position) return;
      position = next;
      rank = next_rank;
    }
  }

  static std::set<std::int64_t> numbers_near(std::int64_t nodes, std::int64_t count) {
    std::set<std::int64_t> numbers{
        0,         1,        count, nodes / 2, nodes * 2, nodes - nodes / 8, nodes + nodes / 8,
        nodes - 1, nodes + 1};
    std::erase_if(numbers,
                  [&](std::int64_t each) { return each < 0 || each > count || each == nodes; });
    return numbers;
  }

  const Problem& problem_;
  const Objective objective_;
  const Limits& limits_;
  const std::size_t keep_;
  std::vector<std::vector<Parts>> ways_;  // by kind
  std::map<Rank, Choice> best_;
  std::map<Position, std::optional<Rank>> seen_;
  Found found_;
};

}  // namespace

Found search(const Problem& problem, Objective objective, const Limits& limits, std::size_t keep) {
  return Search(problem, objective, limits, keep).run();
}

std::vector<Choice> plain_choices(const Problem& problem, Objective objective,
                                  const Limits& limits) {
  std::vector<std::vector<NodeUse>> plain(1);  // the first: all devices
  for (std::size_t k = 0; k < problem.nodes.size(); ++k) {
    const NodeKind& node = problem.nodes[k];
    NodeUse all{static_cast<int>(k), node.count, {}};
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      all.parts.push_back({node.devices[d].offered ? node.devices[d].units : 0, 0});
      if (!node.devices[d].offered) continue;
      NodeUse alone{static_cast<int>(k), 1, std::vector<NodeUse::Part>(node.devices.size())};
      alone.parts[d].units = 1;
      plain.push_back({std::move(alone)});
    }
    if (std::ranges::any_of(all.parts, [](const NodeUse::Part& part) { return part.units > 0; }))
      plain.front().push_back(std::move(all));
  }
  std::vector<Choice> choices;
  for (std::vector<NodeUse>& uses : plain)
    if (std::optional<Choice> choice = best_shares(problem, std::move(uses), objective, limits))
      choices.push_back(std::move(*choice));
  return choices;
}

}  // namespace regatta::optimize
