#include "optimize/bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace regatta::optimize {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// Under a limit of watts, a step may be so many times as long as the whole batch on the slowest
// device: to draw less, devices may have to rest between.
constexpr double longest_stretch = 1000;
// Slices of time that the bound of joules times seconds is made of: each is so much longer.
constexpr double slice_ratio = 1.01;
constexpr int most_slices = 400;

Rational exact(double value) { return Rational(value); }
Rational exact(std::int64_t value) { return Rational(static_cast<double>(value)); }

// Seconds that so many bytes take at least; never above the quotient.
double seconds_below(double bytes, double bandwidth) {
  if (!(bytes > 0) || std::isinf(bandwidth)) return 0;
  return std::nextafter(bytes / bandwidth, 0);
}

bool has_stages(const Problem& problem) { return problem.segments.size() > 1; }

// One sample must go forward and backward through all segments before the next step begins.
double longest_chain(const Problem& problem, const std::vector<std::int64_t>& nodes) {
  Rational sum = 0;
  for (std::size_t g = 0; g < problem.segments.size(); ++g) {
    double least = infinite;
    for (std::size_t k = 0; k < problem.nodes.size(); ++k)
      if (nodes[k] > 0)
        for (const Device& device : problem.nodes[k].devices)
          for (const DeviceState& state : device.states)
            least = std::min(least, std::nextafter(state.least[g].at(1), 0));
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

// Seconds that the whole batch takes the slowest device, by lower ends.
double slowest_alone(const Problem& problem) {
  double slowest = 0;
  for (const NodeKind& node : problem.nodes)
    for (const Device& device : node.devices)
      for (const DeviceState& state : device.states)
        slowest = std::max(slowest, total(state.least).at(static_cast<double>(problem.batch)));
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
                         const Limits& limits, double least_step_s, double most_step_s) {
  const Rational batch = exact(problem.batch), steps = exact(problem.steps());
  const bool stages = has_stages(problem);
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
  const Rational joule_price = exact(problem.money_per_joule), longest = exact(most_step_s);
  const int step = add(1, resting, joule_price * resting_paid,
                       exact(std::max(least_step_s, scenario.least_step_s)), longest);

  std::vector<Terms> samples(problem.segments.size());  // that are computed, by segment
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
        const Rational more_idle = exact(state.idle_watts) - exact(least_idle(device));
        for (std::size_t g = 0; g < problem.segments.size(); ++g) {
          // What a share costs however small it is, is spread over the most it can be.
          const auto spread = [&](const CostLine& line) -> Rational {
            return exact(line.per_sample) + exact(line.fixed) / most;
          };
          const Rational seconds = spread(state.least[g]);
          const Rational drawn = spread(state.least_joules[g]) + more_idle * seconds;
          const int here = add(0, drawn, price * drawn, 0, batch);
          busy.emplace_back(here, -seconds);
          held.emplace_back(here, -1);
          samples[g].emplace_back(here, 1);
        }
      }
      program.add_row(std::move(busy), 0);
      if (!stages) program.add_row(std::move(held), Rational(-most * units * count));
    }
  }
  for (Terms& each : samples) program.add_row(std::move(each), batch);

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

double bound_between(const Problem& problem, Quantity quantity, const Limits& limits,
                     double least_step_s, double most_step_s) {
  double best = infinite;
  for (const Scenario& scenario : scenarios(problem)) {
    if (scenario.least_step_s > most_step_s) continue;
    const LinearProgram program =
        relaxation(problem, scenario, quantity, limits, least_step_s, most_step_s);
    if (proven_impossible(program)) continue;
    const Rational proven = proven_minimum(program, solve(program).duals);
    best = std::min(best, std::max(0.0, rounded_down(proven)));
  }
  return best;
}

double most_step(const Problem& problem, const Limits& limits) {
  // A plan that waits for nothing is never worse: its step ends with the slowest device's work by
  // lower ends, or with the exchange.
  double most = (limits.watts ? longest_stretch : 1) * slowest_alone(problem);
  for (const Scenario& scenario : scenarios(problem)) most = std::max(most, scenario.least_step_s);
  if (limits.seconds)
    most = std::min(
        most, std::nextafter(*limits.seconds / static_cast<double>(problem.steps()), infinite));
  return most;
}

}  // namespace

double lower_bound(const Problem& problem, Quantity quantity, const Limits& limits) {
  double bound = bound_between(problem, quantity, limits, 0, most_step(problem, limits));
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
  if (!std::isfinite(apart.step_s) || apart.energy_j <= 0) return apart.step_s * apart.energy_j;
  const double last = std::min(best_known / apart.energy_j, most_step(problem, limits));
  const double wanted = std::log(last / apart.step_s) / std::log(slice_ratio);
  const double ratio =
      wanted > most_slices ? std::pow(last / apart.step_s, 1.0 / most_slices) : slice_ratio;
  double best = best_known;
  for (double from = apart.step_s; from > 0 && from < last; from *= ratio) {
    const double energy = bound_between(problem, Quantity::energy_j, limits, from, from * ratio);
    if (std::isfinite(energy)) best = std::min(best, std::nextafter(from * energy, 0));
  }
  return best;
}

}  // namespace regatta::optimize
