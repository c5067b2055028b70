#include "app/optimized_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "app/optimizer_problem.h"
#include "base/error.h"
#include "optimize/search.h"
#include "report/text.h"
#include "sim/simulate.h"

namespace regatta::app {
namespace {

using optimize::Choice;
using optimize::Limits;
using optimize::Objective;
using optimize::Outcome;
using optimize::Problem;
using optimize::Quantity;

// The best few by the model are simulated. More nodes than the simulator plays message by message
// are not: the model's word is taken.
constexpr std::size_t simulated_choices = 5;
constexpr std::int64_t most_simulated_nodes = 64;
// Devices that reach the exchange later apart than this are told of.
constexpr double together = 0.05;

std::string percent(double share) { return formatted("%.1f%%", 100 * share); }

std::string joules_text(double joules) { return formatted("%.4g J", joules); }

double steps_of(const Problem& problem) { return static_cast<double>(problem.steps()); }

// --- what cannot be ------------------------------------------------------------------------------

// Throws if a bound proves that no plan keeps the limits.
void require_possible(const Problem& problem, const Limits& limits) {
  const double steps = steps_of(problem);
  const std::string run = " for " + std::to_string(problem.images) + " images in " +
                          std::to_string(problem.steps()) + " steps";
  const auto refuse = [&](const std::string& flag, const std::string& limit,
                          const std::string& bound) {
    throw InputError(flag + " " + limit + " cannot be kept: no plan needs less than " + bound +
                     run + " (proven bound)");
  };
  if (limits.watts && optimize::unused_watts(problem) > *limits.watts)
    refuse("--power-cap", formatted("%g W", *limits.watts),
           formatted("%g W", optimize::unused_watts(problem)) + ", which nodes draw at rest,");
  const Limits none;
  if (limits.seconds) {
    const double bound = lower_bound(problem, Quantity::step_s, none) * steps;
    if (bound > *limits.seconds)
      refuse("--deadline", formatted("%g s", *limits.seconds), formatted("%.4g s", bound));
  }
  if (limits.joules) {
    const double bound = lower_bound(problem, Quantity::energy_j, none) * steps;
    if (bound > *limits.joules) refuse("--joules", joules_text(*limits.joules), joules_text(bound));
  }
  if (limits.money) {
    const double bound = lower_bound(problem, Quantity::cost, none) * steps;
    if (bound > *limits.money)
      refuse("--money", formatted("%g", *limits.money), formatted("%.4g", bound));
  }
  if (!limits.none() && std::isinf(lower_bound(problem, Quantity::step_s, limits)))
    throw InputError("--deadline, --power-cap, --joules and --money cannot be kept together" + run +
                     ": the bound proves that no plan does; loosen one of them");
}

void require_found(const Problem& problem, const Limits& limits, const optimize::Found& found) {
  if (found.best.empty()) {
    std::int64_t room = 0;
    for (const optimize::NodeKind& node : problem.nodes)
      for (const optimize::Device& device : node.devices)
        if (device.offered)
          room += node.count * device.units * std::min(device.most_samples, problem.batch);
    throw InputError("--batch " + std::to_string(problem.batch) +
                     ": the memory of all devices together holds " + std::to_string(room) +
                     " samples; use a smaller --batch");
  }
  const Outcome& best = found.best.front().outcome;
  const double over = excess(problem, best, limits);
  if (over > 0)
    throw InputError("no plan was found within the limits: the nearest takes " +
                     formatted("%.4g s, %.4g J and draws %.4g W at most",
                               best.step_s * steps_of(problem), best.energy_j * steps_of(problem),
                               best.peak_watts) +
                     ", " + percent(over) + " beyond one of them; loosen it");
}

// --- the best few, simulated ---------------------------------------------------------------------

std::int64_t nodes_of(const Choice& choice) {
  std::int64_t nodes = 0;
  for (const optimize::NodeUse& use : choice.uses) nodes += use.nodes;
  return nodes;
}

double rent_of(const Problem& problem, const Choice& choice, double step_s) {
  double rent = 0;
  for (const optimize::NodeUse& use : choice.uses) {
    const optimize::NodeKind& node = problem.nodes[static_cast<std::size_t>(use.kind)];
    rent += static_cast<double>(use.nodes) * node.money_per_s *
            std::max(step_s, node.least_rent_s / steps_of(problem));
  }
  return rent;
}

// The choice with the time and joules that the simulation found; energy is paid for in proportion.
Outcome corrected(const Problem& problem, const Choice& choice, double step_s, double energy_j) {
  Outcome outcome = choice.outcome;
  const double for_energy = outcome.cost - rent_of(problem, choice, outcome.step_s);
  outcome.cost = rent_of(problem, choice, step_s) +
                 (outcome.energy_j > 0 ? for_energy * energy_j / outcome.energy_j : 0);
  outcome.step_s = step_s;
  outcome.energy_j = energy_j;
  return outcome;
}

struct Candidate {
  Plan plan;
  Choice choice;
  Outcome outcome;
};

std::optional<Candidate> simulated(const Graph& graph, const Recipe& recipe,
                                   const Platform& platform, const sim::Profiles& profiles,
                                   const NodeOptions& options, const Problem& problem,
                                   const Choice& choice) {
  NodeOptions own = options;
  own.update = choice.update;
  Candidate made{
      plan_for_devices(graph, recipe, platform, devices_of(problem, platform, choice), own), choice,
      choice.outcome};
  if (nodes_of(choice) > most_simulated_nodes) return made;
  try {
    require_memory(graph, made.plan, recipe, platform);
  } catch (const InputError&) {
    return std::nullopt;  // the model's straight line of memory was too kind
  }
  sim::PreparedFleet fleet(graph, recipe, platform, profiles);
  fleet.follow(made.plan);
  const sim::Simulated played = sim::simulate(fleet.fleet(), {.steps = 3});
  const double step_s = played.step_s.front();
  made.outcome = corrected(problem, choice, step_s,
                           played.energy_j.front() + unused_watts(made.plan, platform) * step_s);
  return made;
}

// --- telling it ----------------------------------------------------------------------------------

std::vector<DeviceRole> roles(const Platform& platform, const Problem& problem,
                              const Choice& choice, double step_s) {
  std::map<std::pair<std::string, std::string>, DeviceShare> used;
  std::set<std::string> nodes;
  for (const DeviceShare& each : devices_of(problem, platform, choice)) {
    used[{each.node, each.group}] = each;
    nodes.insert(each.node);
  }
  std::vector<DeviceRole> all;
  for (std::size_t k = 0; k < platform.nodes.size(); ++k) {
    const PlatformNode& node = platform.nodes[k];
    for (int copy = 0; copy < node.count; ++copy) {
      const std::string name = node.count == 1 ? node.name : node.name + "-" + std::to_string(copy);
      const bool on = nodes.contains(name);
      for (std::size_t d = 0; d < node.groups.size(); ++d) {
        const optimize::Device& device = problem.nodes[k].devices[d];
        for (int unit = 0; unit < device.units; ++unit) {
          DeviceRole role{
              name, device.units > 1 ? device.group + "-" + std::to_string(unit) : device.group};
          const auto found = used.find({role.node, role.device});
          const optimize::DeviceState* state = &device.states.front();
          if (found != used.end()) {
            role.used = true;
            role.role = "compute";
            role.share = found->second.samples;
            role.state = found->second.state;
            for (const optimize::DeviceState& each : device.states)
              if (each.name == role.state) state = &each;
            role.finish_s = optimize::total(state->seconds).at(static_cast<double>(role.share));
          } else {
            role.role = on && node.groups[d].kind == DeviceKind::cpu ? "feed" : "rest";
          }
          const double idle = node.idle_watts();
          const double rest = idle > 0 ? node.watts_when_unused() / idle : 0;
          role.energy_j =
              state->idle_watts * (on ? 1 : rest) * step_s + state->busy_watts * role.finish_s;
          all.push_back(std::move(role));
        }
      }
    }
  }
  return all;
}

// One more node of a kind that rests: what the model expects of it.
void tell_of_resting(std::vector<std::string>& reasons, const Problem& problem,
                     const Choice& choice, Objective objective, const Limits& limits) {
  for (std::size_t k = 0; k < problem.nodes.size(); ++k) {
    const optimize::NodeKind& node = problem.nodes[k];
    std::int64_t used = 0;
    for (const optimize::NodeUse& use : choice.uses)
      if (use.kind == static_cast<int>(k)) used += use.nodes;
    if (used == node.count) continue;
    const std::string who = node.count == 1 ? "'" + node.name + "' rests"
                                            : std::to_string(node.count - used) + " of " +
                                                  std::to_string(node.count) + " nodes '" +
                                                  node.name + "' rest";
    const std::string draw = formatted(" (%.4g W each)", node.unused_watts);
    optimize::NodeUse more{static_cast<int>(k), 1, {}};
    for (const optimize::Device& device : node.devices)
      more.parts.push_back({device.offered ? device.units : 0, 0});
    std::vector<optimize::NodeUse> uses = choice.uses;
    uses.push_back(more);
    const auto with = best_shares(problem, uses, objective, limits);
    if (!with) {
      reasons.push_back(who + draw + ": the batch has no sample for one more of them");
      continue;
    }
    const double change =
        value_of(with->outcome, objective) / value_of(choice.outcome, objective) - 1;
    reasons.push_back(who + draw + ": with one of them, " + std::string(objective_name(objective)) +
                      " would be " + percent(std::abs(change)) + (change >= 0 ? " more" : " less") +
                      (excess(problem, with->outcome, limits) > 0 ? ", beyond a limit" : ""));
  }
}

void tell_of_waiting(std::vector<std::string>& reasons, const std::vector<DeviceRole>& devices) {
  const DeviceRole *first = nullptr, *last = nullptr;
  for (const DeviceRole& each : devices) {
    if (!each.used) continue;
    if (!first || each.finish_s < first->finish_s) first = &each;
    if (!last || each.finish_s > last->finish_s) last = &each;
  }
  if (!first || first->finish_s >= (1 - together) * last->finish_s) return;
  reasons.push_back("'" + first->node + "/" + first->device + "' waits for '" + last->node + "/" +
                    last->device + "' " + percent(1 - first->finish_s / last->finish_s) +
                    " of its time: one sample more would take it longer, or cost more");
}

double bound_of(const optimize::Bound& bound, Objective objective) {
  switch (objective) {
    case Objective::time:
      return bound.step_s;
    case Objective::energy:
      return bound.energy_j;
    case Objective::cost:
      return bound.cost;
    case Objective::edp:
      break;
  }
  return bound.step_s * bound.energy_j;
}

double proven(const Problem& problem, const Limits& limits, Objective objective,
              const optimize::Bound& bound, double best_known) {
  return objective == Objective::edp ? optimize::edp_bound(problem, limits, best_known)
                                     : bound_of(bound, objective);
}

// What the gap is made of: how wide the intervals of costs are, what a plan of whole devices and
// samples must lose, and what the simulation adds.
void tell_of_gap(std::vector<std::string>& reasons, const Problem& problem, const Limits& limits,
                 const Optimized& made, double bound) {
  Problem certain = problem;
  for (optimize::NodeKind& node : certain.nodes)
    for (optimize::Device& device : node.devices)
      for (optimize::DeviceState& state : device.states)
        for (std::size_t g = 0; g < state.seconds.size(); ++g) {
          state.least[g] = {0, state.seconds[g].per_sample};
          state.least_joules[g] = {0, state.seconds[g].per_sample * state.busy_watts};
        }
  const double model = value_of(made.modelled, made.objective);
  const double sharp =
      proven(certain, limits, made.objective, lower_bounds(certain, limits), model);
  if (!(bound > 0) || !std::isfinite(sharp) || sharp <= 0) return;
  reasons.push_back("the gap of " + percent(made.gap) + " is made of intervals of costs (" +
                    percent(sharp / bound - 1) + "), whole devices and samples and the exchange (" +
                    percent(model / sharp - 1) + ")" +
                    (made.simulated
                         ? ", and what the simulation adds (" +
                               percent(value_of(made.predicted, made.objective) / model - 1) + ")"
                         : ""));
}

}  // namespace

double unused_watts(const Plan& plan, const Platform& platform) {
  std::set<std::string> used;
  for (const PlanNode& node : plan.nodes) used.insert(node.name);
  double watts = 0;
  for (const PlatformNode& node : platform.nodes)
    for (int copy = 0; copy < node.count; ++copy)
      if (!used.contains(node.count == 1 ? node.name : node.name + "-" + std::to_string(copy)))
        watts += node.watts_when_unused();
  return watts;
}

Optimized optimized_plan(const Graph& graph, const Recipe& recipe, const Platform& platform,
                         const sim::Profiles& profiles, const NodeOptions& options,
                         const OptimizeRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  Problem problem = optimizer_problem(graph, recipe, platform, profiles, options);
  problem.images = request.images.value_or(recipe.batch);
  require_possible(problem, request.limits);
  const optimize::Found found =
      search(problem, request.objective, request.limits, simulated_choices);
  require_found(problem, request.limits, found);

  std::optional<Candidate> best;
  for (const Choice& choice : found.best) {
    if (excess(problem, choice.outcome, request.limits) > 0) continue;
    std::optional<Candidate> made =
        simulated(graph, recipe, platform, profiles, options, problem, choice);
    if (!made) continue;
    const auto rank = [&](const Candidate& each) {
      return std::pair(excess(problem, each.outcome, request.limits),
                       value_of(each.outcome, request.objective));
    };
    if (!best || rank(*made) < rank(*best)) best = std::move(made);
    if (nodes_of(choice) > most_simulated_nodes) break;
  }
  if (!best)
    throw InputError("--batch " + std::to_string(recipe.batch) +
                     " fits into the memory of no devices that were tried; use a smaller one");
  if (const double over = excess(problem, best->outcome, request.limits); over > 0)
    throw InputError("the best plans keep the limits by the model, but miss one by " +
                     percent(over) + " when they are simulated: " +
                     formatted("%.4g s and %.4g J; loosen it",
                               best->outcome.step_s * steps_of(problem),
                               best->outcome.energy_j * steps_of(problem)));

  Optimized made;
  made.objective = request.objective;
  made.images = problem.images;
  made.steps = problem.steps();
  made.simulated = nodes_of(best->choice) <= most_simulated_nodes;
  made.predicted = best->outcome;
  made.modelled = best->choice.outcome;
  made.has_prices = problem.money_per_joule > 0 ||
                    std::ranges::any_of(problem.nodes, [](const optimize::NodeKind& node) {
                      return node.money_per_s > 0;
                    });
  made.bound = lower_bounds(problem, request.limits);
  const double bound = proven(problem, request.limits, request.objective, made.bound,
                              value_of(made.predicted, request.objective));
  made.gap = bound > 0 ? value_of(made.predicted, request.objective) / bound - 1 : 0;
  made.exchange_bytes = nodes_of(best->choice) > 1 ? problem.gradient_bytes() : 0;
  made.devices = roles(platform, problem, best->choice, made.predicted.step_s);
  made.reasons.push_back(
      found.every_choice
          ? "all " + std::to_string(found.tried) + " choices of devices and states were compared"
          : std::to_string(found.tried) + " choices of devices and states were compared, not all");
  if (!made.simulated)
    made.reasons.push_back("more than " + std::to_string(most_simulated_nodes) +
                           " nodes: predicted by the model, not simulated");
  tell_of_waiting(made.reasons, made.devices);
  tell_of_resting(made.reasons, problem, best->choice, request.objective, request.limits);
  tell_of_gap(made.reasons, problem, request.limits, made, bound);
  made.plan = std::move(best->plan);
  made.plan_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return made;
}

Json to_json(const Optimized& made) {
  const auto figures = [&](double step_s, double energy_j, double cost) {
    return Json{{"step_s", step_s},
                {"energy_j", energy_j},
                {"cost", made.has_prices ? Json(cost) : Json()}};
  };
  Json devices = Json::array();
  for (const DeviceRole& each : made.devices) {
    devices.push_back({{"node", each.node},
                       {"device", each.device},
                       {"used", each.used},
                       {"role", each.role},
                       {"share", each.share},
                       {"finish_s", each.finish_s},
                       {"energy_j", each.energy_j}});
    if (!each.state.empty()) devices.back()["state"] = each.state;
  }
  return {
      {"objective", objective_name(made.objective)},
      {"images", made.images},
      {"steps", made.steps},
      {"predicted", figures(made.predicted.step_s, made.predicted.energy_j, made.predicted.cost)},
      {"simulated", made.simulated},
      {"bound", figures(made.bound.step_s, made.bound.energy_j, made.bound.cost)},
      {"gap", made.gap},
      {"devices", devices},
      {"exchange",
       {{"update", node_update_name(made.plan.update)},
        {"bytes", made.exchange_bytes},
        {"seconds", made.modelled.exchange_s}}},
      {"plan_s", made.plan_s},
      {"reasons", made.reasons}};
}

std::string text_of(const Optimized& made) {
  const auto figures = [&](double step_s, double energy_j, double cost) {
    return formatted("%.4g s a step, %.4g J", step_s, energy_j) +
           (made.has_prices ? formatted(", %.4g money", cost) : "");
  };
  std::string text = "least " + std::string(objective_name(made.objective)) + ": " +
                     figures(made.predicted.step_s, made.predicted.energy_j, made.predicted.cost) +
                     (made.simulated ? " (simulated" : " (model") + ", joules estimated)\n";
  text += "proven bound: " + figures(made.bound.step_s, made.bound.energy_j, made.bound.cost) +
          ", each by itself; gap " + percent(made.gap) + "\n";
  if (made.steps > 1) {
    const auto steps = static_cast<double>(made.steps);
    text += formatted("%lld images: ", static_cast<long long>(made.images)) +
            formatted("%.4g s, %.4g J", made.predicted.step_s * steps,
                      made.predicted.energy_j * steps) +
            (made.has_prices ? formatted(", %.4g money", made.predicted.cost * steps) : "") + "\n";
  }
  for (const std::string& reason : made.reasons) text += "  " + reason + "\n";
  return text;
}

}  // namespace regatta::app
