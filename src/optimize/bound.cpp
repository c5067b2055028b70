#include "optimize/bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "optimize/chunks.h"

namespace regatta::optimize {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// Under a limit of watts, a step may be so many times as long as the whole batch on the slowest
// device: to draw less, devices may have to rest between.
constexpr double longest_stretch = 1000;
// Slices of time that the bound of joules times seconds is made of: each is so much longer.
constexpr double slice_ratio = 1.01;
constexpr int most_slices = 400;
// How closely the step is found below which a node has no plan, and the part that is taken off what
// doubles add up to, so that rounding does not raise a bound.
constexpr double step_closeness = 1e-4, rounding = 1e-12;

Rational exact(double value) { return Rational(value); }
Rational exact(std::int64_t value) { return Rational(static_cast<double>(value)); }

// Seconds that so many bytes take at least; never above the quotient.
double seconds_below(double bytes, double bandwidth) {
  if (!(bytes > 0) || std::isinf(bandwidth)) return 0;
  return std::nextafter(bytes / bandwidth, 0);
}

bool has_stages(const Problem& problem) { return problem.segments.size() > 1; }

bool knows_updates(const Problem& problem) {
  return std::ranges::any_of(problem.nodes, [](const NodeKind& node) {
    return std::ranges::any_of(node.devices, [](const Device& device) {
      return !device.states.front().least.update_s.empty();
    });
  });
}

// One sample must go forward and backward through all segments before the next step begins.
double longest_chain(const Problem& problem, const std::vector<std::int64_t>& nodes) {
  Rational sum = 0;
  for (std::size_t g = 0; g < problem.segments.size(); ++g) {
    double least = infinite;
    for (std::size_t k = 0; k < problem.nodes.size(); ++k)
      if (nodes[k] > 0)
        for (const Device& device : problem.nodes[k].devices)
          for (const DeviceState& state : device.states)
            least = std::min(least, std::nextafter(state.least.seconds[g].at(1), 0));
    if (std::isfinite(least)) sum += exact(std::max(least, 0.0));
  }
  return std::max(0.0, rounded_down(sum));
}

// What hangs together over links that need no more than `slowest` seconds, as counts of nodes by
// kind; only where several nodes do.
std::vector<std::vector<std::int64_t>> islands(const Problem& problem, double bytes,
                                               double slowest) {
  std::vector<int> leader(problem.domains.size());
  const auto top = [&](int domain) {
    while (leader[static_cast<std::size_t>(domain)] != domain)
      domain = leader[static_cast<std::size_t>(domain)];
    return domain;
  };
  for (std::size_t d = 0; d < leader.size(); ++d) leader[d] = static_cast<int>(d);
  for (std::size_t d = 0; d < leader.size(); ++d) {
    const Domain& domain = problem.domains[d];
    if (domain.parent >= 0 && seconds_below(bytes, domain.uplink_bandwidth) <= slowest)
      leader[static_cast<std::size_t>(top(static_cast<int>(d)))] = top(domain.parent);
  }
  std::map<int, std::vector<std::int64_t>> found;
  for (std::size_t k = 0; k < problem.nodes.size(); ++k) {
    if (seconds_below(bytes, problem.nodes[k].link_bandwidth) > slowest) continue;
    auto& counts = found[top(problem.nodes[k].domain)];
    counts.resize(problem.nodes.size(), 0);
    counts[k] = problem.nodes[k].count;
  }
  std::vector<std::vector<std::int64_t>> several;
  for (auto& [domain, counts] : found) {
    std::int64_t nodes = 0;
    for (const std::int64_t count : counts) nodes += count;
    if (nodes > 1) several.push_back(std::move(counts));
  }
  return several;
}

// Seconds that the whole step takes the slowest device, by lower ends, in chunks of whatever size.
double slowest_alone(const Problem& problem) {
  double slowest = 0;
  const auto batch = static_cast<double>(problem.batch);
  for (const NodeKind& node : problem.nodes)
    for (const Device& device : node.devices)
      for (const DeviceState& state : device.states) {
        const LeastCosts& least = state.least;
        double samples_s = total(least.seconds).at(batch);
        for (const std::vector<ChunkCost>& chunks : least.chunks)
          for (std::size_t i = 0; i < chunks.size(); ++i)
            samples_s = std::max(samples_s, batch * chunks[i].seconds / static_cast<double>(i + 1));
        slowest = std::max(slowest,
                           samples_s + least.meeting_s +
                               std::accumulate(least.update_s.begin(), least.update_s.end(), 0.0));
      }
  return slowest;
}

double idle_of(const NodeKind& node) {  // in the states that draw least
  double watts = node.idle_watts;
  for (const Device& device : node.devices) {
    double least = infinite;
    for (const DeviceState& state : device.states) least = std::min(least, state.idle_watts);
    watts -= device.units * (device.states.front().idle_watts - least);
  }
  return watts;
}

double least_idle(const Device& device) {
  double least = infinite;
  for (const DeviceState& state : device.states) least = std::min(least, state.idle_watts);
  return least;
}

// The one device of the one node that takes part, if the costs of its chunks are known: all
// segments of a chunk are computed there. Null: there are others.
const Device* only_device(const Problem& problem, const Scenario& scenario) {
  const Device* only = nullptr;
  std::int64_t nodes = 0;
  for (std::size_t k = 0; k < problem.nodes.size(); ++k) {
    nodes += scenario.nodes[k];
    if (scenario.nodes[k] != 1) continue;
    const std::vector<Device>& devices = problem.nodes[k].devices;
    if (devices.size() == 1 && devices.front().units == 1) only = &devices.front();
  }
  if (nodes != 1 || !only) return nullptr;
  const bool known = std::ranges::all_of(
      only->states, [](const DeviceState& state) { return !state.least.chunks.empty(); });
  return known ? only : nullptr;
}

// By what factor the batch, cut into chunks that are possible, costs more than if each sample cost
// the least that any size of chunk allows.
struct Stretch {
  Rational seconds = 1, joules = 1;
  bool possible = true;
};

Stretch stretch_of(const DeviceState& state, std::int64_t batch, double longest_s) {
  const BatchCost cost = least_batch(state.least, batch, longest_s);
  if (!std::isfinite(cost.seconds)) return {.possible = false};
  const auto samples = static_cast<double>(batch);
  const auto times = [](double all, double of_lines) {
    return exact(of_lines > 0 ? std::max(1.0, all / of_lines * (1 - rounding)) : 1.0);
  };
  return {times(cost.seconds, total(state.least.seconds).at(samples)),
          times(cost.joules, total(state.least.joules).at(samples))};
}

// Whether every plan must compute chunks side by side, since one after the other they take longer
// than a step. Then gradients and statistics have to meet, which costs too.
bool must_meet(const Device& device, std::int64_t batch, double longest_s) {
  return std::ranges::all_of(device.states, [&](const DeviceState& state) {
    return least_in_one_lane(state.least, batch) * (1 - rounding) > longest_s;
  });
}

// A linear expression of joules or money in the relaxation's variables.
using Terms = std::vector<std::pair<int, Rational>>;

}  // namespace

double least_crossing_bytes(const Problem& problem) {
  if (!has_stages(problem)) return problem.gradient_bytes();
  // Either some segment is computed on both sides and its gradients meet, or every segment is on
  // one side and all samples cross the border between two of them. A segment without parameters is
  // computed on both sides at no such price, if only one sample goes there and back.
  double gradients = infinite, border = infinite;
  for (std::size_t g = 0; g < problem.segments.size(); ++g) {
    gradients = std::min(gradients, problem.segments[g].gradient_bytes);
    if (g + 1 < problem.segments.size())
      border = std::min(border, problem.segments[g].border_bytes);
  }
  return std::min(gradients, border * static_cast<double>(problem.batch));
}

std::vector<Scenario> scenarios(const Problem& problem) {
  std::vector<Scenario> all;
  for (std::size_t k = 0; k < problem.nodes.size(); ++k) {
    Scenario alone{std::vector<std::int64_t>(problem.nodes.size(), 0), 0};
    alone.nodes[k] = 1;
    alone.least_step_s = longest_chain(problem, alone.nodes);
    all.push_back(std::move(alone));
  }
  const double bytes = least_crossing_bytes(problem);
  std::set<double> speeds;
  for (const NodeKind& node : problem.nodes)
    speeds.insert(seconds_below(bytes, node.link_bandwidth));
  for (const Domain& domain : problem.domains)
    if (domain.parent >= 0) speeds.insert(seconds_below(bytes, domain.uplink_bandwidth));
  for (const double slowest : speeds)
    for (std::vector<std::int64_t>& nodes : islands(problem, bytes, slowest)) {
      const double chain = longest_chain(problem, nodes);
      all.push_back({std::move(nodes), std::max(slowest, chain)});
    }
  return all;
}

LinearProgram relaxation(const Problem& problem, const Scenario& scenario, Quantity quantity,
                         const Limits& limits, const StepRange& range) {
  const Rational batch = exact(problem.batch), steps = exact(problem.steps());
  const bool stages = has_stages(problem), updates_known = knows_updates(problem);
  Terms joules, money;  // of a step

  LinearProgram program;
  const auto add = [&](const Rational& own_cost, const Rational& own_joules,
                       const Rational& own_money, const Rational& lower, const Rational& upper) {
    const Rational cost = quantity == Quantity::step_s     ? own_cost
                          : quantity == Quantity::energy_j ? own_joules
                                                           : own_money;
    const int variable = program.add_variable(cost, lower, upper);
    joules.emplace_back(variable, own_joules);
    money.emplace_back(variable, own_money);
    return variable;
  };

  // Seconds of the step. Nodes that rest draw for all of it.
  Rational resting = 0, resting_paid = 0;
  for (const NodeKind& node : problem.nodes) {
    const Rational watts = exact(node.unused_watts) * exact(node.count);
    resting += watts;
    if (node.pays_energy) resting_paid += watts;
  }
  const Rational joule_price = exact(problem.money_per_joule), longest = exact(range.most_s);
  const Device* const only = only_device(problem, scenario);
  const int step = add(1, resting, joule_price * resting_paid,
                       exact(std::max(range.least_s, scenario.least_step_s)), longest);

  // By segment: samples that are computed, and parts of the step of its parameters that are taken.
  std::vector<Terms> samples(problem.segments.size()), updates(problem.segments.size());
  for (std::size_t k = 0; k < problem.nodes.size(); ++k) {
    if (scenario.nodes[k] == 0) continue;
    const NodeKind& node = problem.nodes[k];
    const Rational count = exact(scenario.nodes[k]);
    // Seconds that nodes of this kind are on, all of them together.
    const Rational awake = exact(idle_of(node)) - exact(node.unused_watts);
    const Rational price = node.pays_energy ? joule_price : Rational(0);
    const int on =
        add(0, awake, exact(node.money_per_s) + price * awake, 0, Rational(count * longest));
    program.add_row({{step, count}, {on, -1}}, 0);
    for (const Device& device : node.devices) {
      const Rational units = exact(std::int64_t{device.units});
      const Rational most =
          stages ? batch
                 : exact(std::clamp<std::int64_t>(std::max(device.most_samples, device.most_alone),
                                                  0, problem.batch));
      if (most <= 0) continue;
      Terms busy{{on, units}};  // devices compute no longer than their nodes are on
      Terms held;
      for (const DeviceState& state : device.states) {
        Stretch stretch;
        if (only) stretch = stretch_of(state, problem.batch, range.longest_s);
        if (!stretch.possible) continue;
        const Rational more_idle = exact(state.idle_watts) - exact(least_idle(device));
        for (std::size_t g = 0; g < problem.segments.size(); ++g) {
          // What a share costs however small it is, is spread over the most it can be.
          const auto spread = [&](const CostLine& line) -> Rational {
            return exact(line.per_sample) + exact(line.fixed) / most;
          };
          const Rational seconds = stretch.seconds * spread(state.least.seconds[g]);
          const Rational drawn =
              stretch.joules * spread(state.least.joules[g]) + more_idle * seconds;
          const int here = add(0, drawn, price * drawn, 0, batch);
          busy.emplace_back(here, -seconds);
          held.emplace_back(here, -1);
          samples[g].emplace_back(here, 1);
          if (!updates_known) continue;
          const Rational update = exact(state.least.update_seconds(g));
          const Rational update_drawn = exact(state.least.update_joules(g)) + more_idle * update;
          const int part = add(0, update_drawn, price * update_drawn, 0, 1);
          busy.emplace_back(part, -update);
          updates[g].emplace_back(part, 1);
        }
      }
      if (only && must_meet(device, problem.batch, range.longest_s)) {
        double seconds = infinite, drawn = infinite;
        for (const DeviceState& state : device.states) {
          seconds = std::min(seconds, state.least.meeting_s);
          drawn = std::min(drawn, state.least.meeting_j);
        }
        const int meeting = add(0, exact(drawn), price * exact(drawn), 1, 1);
        busy.emplace_back(meeting, -exact(seconds));
      }
      program.add_row(std::move(busy), 0);
      if (!stages) program.add_row(std::move(held), Rational(-most * units * count));
    }
  }
  for (Terms& each : samples) program.add_row(std::move(each), batch);
  if (updates_known)
    for (Terms& each : updates) program.add_row(std::move(each), 1);

  const auto at_most = [&](Terms terms, const Rational& limit) {
    for (auto& [variable, coefficient] : terms) coefficient = -coefficient;
    program.add_row(std::move(terms), Rational(-limit));
  };
  if (limits.joules) at_most(joules, Rational(exact(*limits.joules) / steps));
  if (limits.money) at_most(money, Rational(exact(*limits.money) / steps));
  if (limits.watts) {  // what is drawn on average is not above it either
    Terms average = joules;
    average.front().second -= exact(*limits.watts);
    at_most(std::move(average), 0);
  }
  return program;
}

namespace {

// The same rows, but samples may be missing: the fewest of them. Proven to be more than none, the
// rows cannot be kept.
bool proven_impossible(const LinearProgram& program) {
  LinearProgram missing;
  for (std::size_t j = 0; j < program.cost().size(); ++j)
    missing.add_variable(0, program.lower()[j], program.upper()[j]);
  for (const LinearProgram::Row& row : program.rows()) {
    auto terms = row.terms;
    Rational scale = 1;
    for (const auto& [variable, coefficient] : row.terms)
      scale = std::max<Rational>(scale, abs(coefficient));
    // Enough to keep the row whatever the other variables are.
    Rational enough = abs(row.at_least);
    for (const auto& [variable, coefficient] : row.terms) {
      const auto j = static_cast<std::size_t>(variable);
      enough +=
          abs(coefficient) * std::max<Rational>(abs(program.lower()[j]), abs(program.upper()[j]));
    }
    const int slack = missing.add_variable(1, 0, Rational(enough / scale));
    terms.emplace_back(slack, scale);
    missing.add_row(std::move(terms), row.at_least);
  }
  return proven_minimum(missing, solve(missing).duals) > 0;
}

// Of plans in this scenario whose step is no longer than `range.longest_s`.
double scenario_bound(const Problem& problem, const Scenario& scenario, Quantity quantity,
                      const Limits& limits, const StepRange& range) {
  if (scenario.least_step_s > range.most_s) return infinite;
  const LinearProgram program = relaxation(problem, scenario, quantity, limits, range);
  if (proven_impossible(program)) return infinite;
  const Rational proven = proven_minimum(program, solve(program).duals);
  return std::max(0.0, rounded_down(proven));
}

// If plans with a step of S seconds at most have a bound above S, there are none, and S itself is a
// bound: the largest such S, or nearly.
double raised(const Problem& problem, const Scenario& scenario, const Limits& limits,
              StepRange range, double bound) {
  if (!only_device(problem, scenario) || !std::isfinite(bound)) return bound;
  const auto no_plan_within = [&](double seconds) {
    range.longest_s = seconds;
    return scenario_bound(problem, scenario, Quantity::step_s, limits, range) > seconds;
  };
  const double most = range.longest_s;
  double low = bound, high = 2 * bound;
  while (high < most && high > 0 && no_plan_within(high)) {
    low = high;
    high *= 2;
  }
  high = std::min(high, most);
  while (high - low > step_closeness * low) {
    const double middle = low + (high - low) / 2;
    (no_plan_within(middle) ? low : high) = middle;
  }
  return low;
}

double bound_between(const Problem& problem, Quantity quantity, const Limits& limits,
                     const StepRange& range) {
  double best = infinite;
  for (const Scenario& scenario : scenarios(problem)) {
    double bound = scenario_bound(problem, scenario, quantity, limits, range);
    if (quantity == Quantity::step_s && bound < best)
      bound = raised(problem, scenario, limits, range, bound);
    best = std::min(best, bound);
  }
  return best;
}

// Of plans that keep the limits.
double longest_step(const Problem& problem, const Limits& limits) {
  if (!limits.seconds) return infinite;
  return std::nextafter(*limits.seconds / static_cast<double>(problem.steps()), infinite);
}

double most_step(const Problem& problem, const Limits& limits) {
  // A plan that waits for nothing is never worse: its step ends with the slowest device's work by
  // lower ends, or with the exchange.
  double most = (limits.watts ? longest_stretch : 1) * slowest_alone(problem);
  for (const Scenario& scenario : scenarios(problem)) most = std::max(most, scenario.least_step_s);
  return std::min(most, longest_step(problem, limits));
}

}  // namespace

double lower_bound(const Problem& problem, Quantity quantity, const Limits& limits) {
  const double most = most_step(problem, limits);
  double bound = bound_between(problem, quantity, limits, {0, most, longest_step(problem, limits)});
  if (quantity != Quantity::cost || !std::isfinite(bound)) return bound;
  // Some node takes part, and is paid for at least so long.
  double least_rent = infinite;
  for (const NodeKind& node : problem.nodes)
    least_rent = std::min(least_rent, std::nextafter(node.money_per_s * node.least_rent_s /
                                                         static_cast<double>(problem.steps()),
                                                     0));
  return std::max({bound, least_rent, 0.0});
}

Bound lower_bounds(const Problem& problem, const Limits& limits) {
  return {lower_bound(problem, Quantity::step_s, limits),
          lower_bound(problem, Quantity::energy_j, limits),
          lower_bound(problem, Quantity::cost, limits)};
}

double edp_bound(const Problem& problem, const Limits& limits, double best_known) {
  const Bound apart = lower_bounds(problem, limits);
  if (!std::isfinite(apart.step_s) || apart.energy_j <= 0 || apart.step_s <= 0)
    return apart.step_s * apart.energy_j;
  const double most = most_step(problem, limits);
  const double last = std::min(best_known / apart.energy_j, most);
  const double wanted = std::log(last / apart.step_s) / std::log(slice_ratio);
  const double ratio =
      wanted > most_slices ? std::pow(last / apart.step_s, 1.0 / most_slices) : slice_ratio;
  double best = best_known;
  for (double from = apart.step_s, to = 0; to < last; from = to) {
    to = from * ratio;
    // The last slice has no end: all longer plans are in it.
    const StepRange range =
        to < last ? StepRange{from, to, to}
                  : StepRange{from, std::max(most, to), longest_step(problem, limits)};
    const double energy = bound_between(problem, Quantity::energy_j, limits, range);
    if (std::isfinite(energy)) best = std::min(best, std::nextafter(from * energy, 0));
  }
  return best;
}

}  // namespace regatta::optimize
