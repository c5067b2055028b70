#include "optimize/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace regatta::optimize {
namespace {

constexpr std::array<NodeUpdate, 4> updates{NodeUpdate::ring, NodeUpdate::tree,
                                            NodeUpdate::hierarchical, NodeUpdate::server_cpu};
// With more compute times to try than this, some between are left out.
constexpr std::size_t most_compute_times = 512;

double number(std::int64_t value) { return static_cast<double>(value); }

const NodeKind& kind_of(const Problem& problem, const NodeUse& use) {
  return problem.nodes[static_cast<std::size_t>(use.kind)];
}

// Whether gradients are exchanged at all.
bool has_exchange(const Problem& problem, std::span<const NodeUse> uses) {
  std::int64_t holders = 0;
  for (const NodeUse& use : uses) {
    const NodeKind& node = kind_of(problem, use);
    int on_node = 0;
    for (std::size_t d = 0; d < node.devices.size(); ++d)
      if (node.devices[d].own_gradients) on_node += use.parts[d].units;
    holders += use.nodes * std::max(1, on_node);
  }
  return holders > 1;
}

// Devices that are used alike, and what a sample costs there.
struct Team {
  std::size_t use = 0, device = 0;
  std::int64_t devices = 0, most = 0;
  CostLine seconds;
  double price = 0;  // of a sample: joules beyond idle, or money

  // Samples that one of its devices finishes by `when`.
  std::int64_t room(double when) const {
    if (!(seconds.at(1) <= when)) return 0;
    if (seconds.per_sample <= 0) return most;
    const double ratio = (when - seconds.fixed) / seconds.per_sample;
    auto samples = ratio >= number(most) ? most : static_cast<std::int64_t>(ratio);
    while (samples < most && seconds.at(number(samples + 1)) <= when) ++samples;
    while (samples > 0 && seconds.at(number(samples)) > when) --samples;
    return samples;
  }
};

std::vector<Team> teams_of(const Problem& problem, const std::vector<NodeUse>& uses,
                           Objective objective) {
  std::vector<Team> teams;
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const NodeKind& node = kind_of(problem, uses[u]);
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      const NodeUse::Part part = uses[u].parts[d];
      if (part.units == 0) continue;
      const Device& device = node.devices[d];
      const DeviceState& state = device.states[static_cast<std::size_t>(part.state)];
      const std::int64_t room = has_exchange(problem, uses)
                                    ? device.most_samples
                                    : std::max(device.most_samples, device.most_alone);
      Team team{u,
                d,
                part.units * uses[u].nodes,
                std::min(room, problem.batch),
                share_seconds(problem, uses, state),
                0};
      team.price = state.busy_watts * team.seconds.per_sample;
      if (objective == Objective::cost)
        team.price *= node.pays_energy ? problem.money_per_joule : 0;
      teams.push_back(team);
    }
  }
  return teams;
}

std::int64_t room_of_all(const std::vector<Team>& teams, double when) {
  std::int64_t room = 0;
  for (const Team& team : teams) room += team.devices * team.room(when);
  return room;
}

// The earliest time at which all teams together can have computed the batch, each device one sample
// at least.
double least_compute_time(const std::vector<Team>& teams, std::int64_t batch) {
  double low = 0, high = 0;
  for (const Team& team : teams) {
    low = std::max(low, team.seconds.at(1));
    high = std::max(high, team.seconds.at(number(std::min(batch, team.most))));
  }
  if (room_of_all(teams, low) >= batch) return low;
  while (true) {  // until no number lies between
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (room_of_all(teams, middle) >= batch ? high : low) = middle;
  }
  double last = 0;
  for (const Team& team : teams) last = std::max(last, team.seconds.at(number(team.room(high))));
  return last;
}

std::vector<double> compute_times(const std::vector<Team>& teams, std::int64_t batch,
                                  Objective objective, const Limits& limits) {
  const double least = least_compute_time(teams, batch);
  std::vector<double> times{least};
  const bool patient = objective != Objective::time || limits.joules || limits.money;
  if (!patient) return times;
  for (const Team& team : teams) {
    const std::int64_t first = team.room(least) + 1;
    const std::int64_t step = std::max<std::int64_t>(
        1, (team.most - first) * std::ssize(teams) / static_cast<std::int64_t>(most_compute_times));
    for (std::int64_t samples = first; samples <= team.most; samples += step)
      times.push_back(team.seconds.at(number(samples)));
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

// The cheapest shares with which all are done by `when`.
std::vector<std::vector<Portion>> cheapest(const std::vector<Team>& teams, std::int64_t batch,
                                           double when, const std::vector<NodeUse>& uses) {
  std::vector<std::vector<Portion>> portions;
  for (const NodeUse& use : uses) portions.emplace_back(use.parts.size());
  std::vector<std::size_t> order(teams.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return teams[i].price; });
  std::int64_t left = batch;
  for (const Team& team : teams) left -= team.devices;
  for (const std::size_t i : order) {
    const Team& team = teams[i];
    const std::int64_t more = std::min(left, team.devices * (team.room(when) - 1));
    left -= more;
    const std::int64_t samples = team.devices + more;
    portions[team.use][team.device] = {team.devices, samples / team.devices,
                                       samples % team.devices};
  }
  return portions;
}

// Seconds of a step whose devices have their gradients after `compute`.
double step_seconds(const Problem& problem, double compute, const ExchangeCost& cost) {
  double step = compute, following = 0;
  // Backward comes to the last segment first, so what leaves after a segment is all before it.
  for (const SegmentTraffic& segment : problem.segments) {
    if (segment.gradient_bytes <= 0) continue;
    following += cost.byte_s * segment.gradient_bytes;
    step = std::max(step, segment.ready * compute + cost.message_s + following);
  }
  return step;
}

std::int64_t nodes_in(std::span<const NodeUse> uses) {
  std::int64_t nodes = 0;
  for (const NodeUse& use : uses) nodes += use.nodes;
  return nodes;
}

// The narrowest link that nodes of several domains have between them.
double narrowest_uplink(const Problem& problem, std::span<const NodeUse> uses) {
  const auto below = [&](int domain, int top) {
    while (domain >= 0 && domain != top)
      domain = problem.domains[static_cast<std::size_t>(domain)].parent;
    return domain == top;
  };
  double narrowest = std::numeric_limits<double>::infinity();
  for (int d = 0; d < static_cast<int>(problem.domains.size()); ++d) {
    bool inside = false, outside = false;
    for (const NodeUse& use : uses)
      (below(kind_of(problem, use).domain, d) ? inside : outside) = true;
    if (inside && outside)
      narrowest =
          std::min(narrowest, problem.domains[static_cast<std::size_t>(d)].uplink_bandwidth);
  }
  return narrowest;
}

}  // namespace

std::span<const NodeUpdate> all_updates() { return updates; }

ExchangeCost star_exchange(const Problem& problem, std::span<const NodeUse> uses,
                           NodeUpdate update) {
  const double nodes = number(nodes_in(uses));
  if (nodes < 2) return {};
  const double uplink = narrowest_uplink(problem, uses);
  double link = std::numeric_limits<double>::infinity();
  std::map<int, double> by_domain;  // nodes
  for (const NodeUse& use : uses) {
    link = std::min(link, kind_of(problem, use).link_bandwidth);
    by_domain[kind_of(problem, use).domain] += number(use.nodes);
  }
  const double narrowest = std::min(link, uplink);
  const auto ring = [](double members, double bandwidth) {
    return 2 * (members - 1) / members / bandwidth;
  };
  switch (update) {
    case NodeUpdate::ring:
      return {0, ring(nodes, narrowest)};
    case NodeUpdate::tree:
      return {0, 2 * (nodes == 2 ? 1 : 2) * std::ceil(std::log2(nodes)) / narrowest};
    case NodeUpdate::hierarchical: {
      // A ring in each domain, and one for each node of the smallest domain between them.
      double most = 0, pieces = nodes;
      for (const auto& [domain, members] : by_domain) {
        most = std::max(most, members);
        pieces = std::min(pieces, members);
      }
      const double domains = number(std::ssize(by_domain));
      const double moved = most > pieces ? 2 / pieces / link : 0;  // see sim/exchange.h
      return {0, ring(most, link) + moved +
                     (domains > 1 ? ring(domains, std::min(pieces * link, uplink)) : 0)};
    }
    case NodeUpdate::server_cpu:
    case NodeUpdate::server_gpu: {
      const double server = kind_of(problem, uses.front()).link_bandwidth;
      return {0, 2 * std::max((nodes - 1) / server, 1 / narrowest)};
    }
    case NodeUpdate::replicated:
      return {0, (nodes - 1) / narrowest};
    case NodeUpdate::chain:  // the sum goes from node to node, then the last sends it to each
      return {0, 2 * (nodes - 1) / narrowest};
    case NodeUpdate::mpi:  // its better algorithms move as much as a ring
      return {0, ring(nodes, narrowest)};
  }
  return {};
}

double value_of(const Outcome& outcome, Objective objective) {
  switch (objective) {
    case Objective::time:
      return outcome.step_s;
    case Objective::energy:
      return outcome.energy_j;
    case Objective::edp:
      return outcome.energy_j * outcome.step_s;
    case Objective::cost:
      return outcome.cost;
  }
  return 0;
}

double excess(const Problem& problem, const Outcome& outcome, const Limits& limits) {
  const double steps = number(problem.steps());
  double worst = 0;
  const auto check = [&](const std::optional<double>& limit, double value) {
    if (limit && value > *limit)
      worst = std::max(worst,
                       *limit > 0 ? value / *limit - 1 : std::numeric_limits<double>::infinity());
  };
  check(limits.seconds, outcome.step_s * steps);
  check(limits.joules, outcome.energy_j * steps);
  check(limits.money, outcome.cost * steps);
  check(limits.watts, outcome.peak_watts);
  return worst;
}

namespace {

// Watts that are drawn for the whole step, and joules beyond them.
struct Drawn {
  double always = 0, beyond = 0;
};

Outcome outcome_with(const Problem& problem, const std::vector<NodeUse>& uses,
                     const std::vector<std::vector<Portion>>& portions, const ExchangeCost& cost) {
  Outcome outcome;
  Drawn all, paid;  // of all nodes, and of those whose energy costs money
  double busy_watts = 0;
  for (const NodeKind& node : problem.nodes) {
    all.always += node.unused_watts * number(node.count);
    if (node.pays_energy) paid.always += node.unused_watts * number(node.count);
  }
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const NodeKind& node = kind_of(problem, uses[u]);
    double watts = node.idle_watts - node.unused_watts, joules = 0;  // of one node, and of all
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      const NodeUse::Part part = uses[u].parts[d];
      if (part.units == 0) continue;
      const DeviceState& full = node.devices[d].states.front();
      const DeviceState& state = node.devices[d].states[static_cast<std::size_t>(part.state)];
      const CostLine seconds = share_seconds(problem, uses, state);
      const Portion& portion = portions[u][d];
      watts += part.units * (state.idle_watts - full.idle_watts);
      joules += state.busy_watts * (number(portion.devices) * seconds.fixed +
                                    seconds.per_sample * number(portion.samples()));
      busy_watts += state.busy_watts * number(portion.devices);
      outcome.compute_s = std::max(outcome.compute_s, seconds.at(number(portion.most())));
    }
    all.always += watts * number(uses[u].nodes);
    all.beyond += joules;
    if (node.pays_energy) {
      paid.always += watts * number(uses[u].nodes);
      paid.beyond += joules;
    }
  }
  outcome.step_s = step_seconds(problem, outcome.compute_s, cost);
  outcome.exchange_s = step_seconds(problem, 0, cost);
  outcome.energy_j = all.always * outcome.step_s + all.beyond;
  outcome.peak_watts = all.always + busy_watts;
  const double steps = number(problem.steps());
  for (const NodeUse& use : uses) {
    const NodeKind& node = kind_of(problem, use);
    outcome.cost +=
        number(use.nodes) * node.money_per_s * std::max(outcome.step_s, node.least_rent_s / steps);
  }
  outcome.cost += problem.money_per_joule * (paid.always * outcome.step_s + paid.beyond);
  return outcome;
}

ExchangeCost exchange_cost(const Problem& problem, const std::vector<NodeUse>& uses,
                           NodeUpdate update) {
  if (!has_exchange(problem, uses)) return {};
  return problem.exchange ? problem.exchange(uses, update) : star_exchange(problem, uses, update);
}

}  // namespace

Outcome outcome_of(const Problem& problem, const std::vector<NodeUse>& uses,
                   const std::vector<std::vector<Portion>>& portions, NodeUpdate update) {
  return outcome_with(problem, uses, portions, exchange_cost(problem, uses, update));
}

std::optional<Choice> best_shares(const Problem& problem, std::vector<NodeUse> uses,
                                  Objective objective, const Limits& limits) {
  std::vector<Team> teams = teams_of(problem, uses, objective);
  std::int64_t least = 0, most = 0;
  for (const Team& team : teams) {
    if (team.most < 1) return std::nullopt;
    least += team.devices;
    most += team.devices * team.most;
  }
  if (teams.empty() || least > problem.batch || most < problem.batch) return std::nullopt;
  Choice best;
  double best_excess = 0;
  bool found = false;
  // Exchanges cost the same whatever the shares are.
  std::vector<std::pair<NodeUpdate, ExchangeCost>> exchanges;
  for (const NodeUpdate update : updates) {
    exchanges.emplace_back(update, exchange_cost(problem, uses, update));
    if (!has_exchange(problem, uses)) break;
  }
  for (const double when : compute_times(teams, problem.batch, objective, limits)) {
    const auto portions = cheapest(teams, problem.batch, when, uses);
    for (const auto& [update, cost] : exchanges) {
      const Outcome outcome = outcome_with(problem, uses, portions, cost);
      const double over = excess(problem, outcome, limits);
      const auto rank = [&](double beyond, const Outcome& each) {
        return std::tuple(beyond, value_of(each, objective), each.step_s, each.energy_j);
      };
      if (found && rank(over, outcome) >= rank(best_excess, best.outcome)) continue;
      best.portions = portions;
      best.update = update;
      best.outcome = outcome;
      best_excess = over;
      found = true;
    }
  }
  best.uses = std::move(uses);
  return best;
}

}  // namespace regatta::optimize
