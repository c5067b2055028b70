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
// Pipelines that the model finds no more than so many times as bad as the best shares are simulated
// too: it knows less of them.
constexpr std::size_t simulated_pipelines = 2, most_stages = 4;
constexpr double worth_simulating = 1.5;
// Devices that reach the exchange later apart than this are told of.
constexpr double together = 0.05;

std::string node_name(const PlatformNode& node, int copy) {
  return node.count == 1 ? node.name : node.name + "-" + std::to_string(copy);
}

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

double rent_of(const Problem& problem, const Plan& plan, const Platform& platform, double step_s) {
  std::set<std::string> used;
  for (const PlanNode& node : plan.nodes) used.insert(node.name);
  double rent = 0;
  for (std::size_t k = 0; k < platform.nodes.size(); ++k)
    for (int copy = 0; copy < platform.nodes[k].count; ++copy)
      if (used.contains(node_name(platform.nodes[k], copy)))
        rent += problem.nodes[k].money_per_s *
                std::max(step_s, problem.nodes[k].least_rent_s / steps_of(problem));
  return rent;
}

// The outcome with the time and joules that the simulation found; energy is paid for in proportion.
Outcome corrected(const Problem& problem, const Plan& plan, const Platform& platform,
                  Outcome outcome, double step_s, double energy_j) {
  const double for_energy = outcome.cost - rent_of(problem, plan, platform, outcome.step_s);
  outcome.cost = rent_of(problem, plan, platform, step_s) +
                 (outcome.energy_j > 0 ? for_energy * energy_j / outcome.energy_j : 0);
  outcome.step_s = step_s;
  outcome.energy_j = energy_j;
  return outcome;
}

// A plan with what the model and the simulation say of it: of shares, or of a pipeline.
struct Candidate {
  Plan plan;
  std::vector<DeviceShare> devices;  // who computes
  Outcome modelled, outcome;
  std::int64_t nodes = 0;
  std::optional<Choice> choice;
  std::optional<optimize::Pipeline> pipeline;
};

std::int64_t nodes_of(const std::vector<DeviceShare>& devices) {
  std::set<std::string> nodes;
  for (const DeviceShare& each : devices) nodes.insert(each.node);
  return std::ssize(nodes);
}

// What is the same for all candidates.
struct Subject {
  const Graph& graph;
  const Recipe& recipe;
  const Platform& platform;
  const sim::Profiles& profiles;
  const NodeOptions& options;
  const Problem& problem;
};

// False: the model's straight line of memory was too kind.
bool simulate(const Subject& subject, Candidate& made) {
  if (made.nodes > most_simulated_nodes) return true;
  try {
    require_memory(subject.graph, made.plan, subject.recipe, subject.platform);
  } catch (const InputError&) {
    return false;
  }
  sim::PreparedFleet fleet(subject.graph, subject.recipe, subject.platform, subject.profiles);
  fleet.follow(made.plan);
  const sim::Simulated played = sim::simulate(fleet.fleet(), {.steps = 3});
  const double step_s = played.step_s.front();
  made.outcome =
      corrected(subject.problem, made.plan, subject.platform, made.modelled, step_s,
                played.energy_j.front() + unused_watts(made.plan, subject.platform) * step_s);
  return true;
}

std::optional<Candidate> candidate(const Subject& subject, const Choice& choice) {
  NodeOptions own = subject.options;
  own.update = choice.update;
  Candidate made;
  made.devices = devices_of(subject.problem, subject.platform, choice);
  made.nodes = nodes_of(made.devices);
  made.modelled = made.outcome = choice.outcome;
  made.choice = choice;
  made.plan = plan_for_devices(subject.graph, subject.recipe, subject.platform, made.devices, own);
  if (!simulate(subject, made)) return std::nullopt;
  return made;
}

std::optional<Candidate> candidate(const Subject& subject, const optimize::Pipeline& pipeline) {
  Candidate made;
  made.devices = devices_of(subject.problem, subject.platform, pipeline);
  made.nodes = nodes_of(made.devices);
  made.modelled = made.outcome = pipeline.outcome;
  made.pipeline = pipeline;
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    stages.push_back({made.devices[i].node, made.devices[i].group,
                      static_cast<std::uint32_t>(pipeline.stages[i].first),
                      static_cast<std::uint32_t>(pipeline.stages[i].last)});
  NodeOptions own = subject.options;
  own.plan.chunks = {{pipeline.chunks}};
  made.plan = plan_over_stages(subject.graph, subject.recipe, subject.platform, stages, own);
  for (PlanNode& node : made.plan.nodes)
    for (DeviceGroup& group : node.groups)
      for (const DeviceShare& each : made.devices)
        if (each.node == node.name && each.group == group.name) group.state = each.state;
  if (!simulate(subject, made)) return std::nullopt;
  return made;
}

// --- telling it ----------------------------------------------------------------------------------

// Seconds that a device computes, and what of the network, if it is a stage.
struct Part {
  double busy_s = 0;
  std::string role = "compute";
};

Part part_of(const Problem& problem, const Candidate& made, const optimize::DeviceState& state,
             const DeviceShare& share) {
  if (!made.pipeline)
    return {optimize::total(state.seconds).at(static_cast<double>(share.samples))};
  for (std::size_t i = 0; i < made.devices.size(); ++i) {
    if (made.devices[i].node != share.node || made.devices[i].group != share.group) continue;
    const optimize::StageUse& stage = made.pipeline->stages[i];
    Part part{0, "stage " + std::to_string(stage.first) + "-" + std::to_string(stage.last)};
    const auto chunks = static_cast<double>(made.pipeline->chunks);
    for (std::size_t g = stage.first; g <= stage.last; ++g)
      part.busy_s += chunks * state.seconds[g].at(static_cast<double>(problem.batch) / chunks);
    return part;
  }
  return {};
}

std::vector<DeviceRole> roles(const Platform& platform, const Problem& problem,
                              const Candidate& made, double step_s) {
  std::map<std::pair<std::string, std::string>, DeviceShare> used;
  std::set<std::string> nodes;
  for (const DeviceShare& each : made.devices) {
    used[{each.node, each.group}] = each;
    nodes.insert(each.node);
  }
  std::vector<DeviceRole> all;
  for (std::size_t k = 0; k < platform.nodes.size(); ++k) {
    const PlatformNode& node = platform.nodes[k];
    for (int copy = 0; copy < node.count; ++copy) {
      const std::string name = node_name(node, copy);
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
            role.share = found->second.samples;
            role.state = found->second.state;
            for (const optimize::DeviceState& each : device.states)
              if (each.name == role.state) state = &each;
            const Part part = part_of(problem, made, *state, found->second);
            role.role = part.role;
            role.finish_s = part.busy_s;
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

// Of the devices that are used: the lower ends of their costs, as a share of the costs.
double low_share(const Problem& problem, const Platform& platform, const Candidate& made) {
  double low = 0, all = 0;
  for (const DeviceShare& share : made.devices)
    for (std::size_t k = 0; k < platform.nodes.size(); ++k) {
      const PlatformNode& node = platform.nodes[k];
      const bool here =
          share.node == node.name || (node.count > 1 && share.node.starts_with(node.name + "-"));
      for (std::size_t d = 0; d < node.groups.size() && here; ++d) {
        const optimize::Device& device = problem.nodes[k].devices[d];
        if (share.group != device.group && !share.group.starts_with(device.group + "-")) continue;
        const auto samples = static_cast<double>(share.samples);
        low += samples * optimize::total(device.states.front().least).per_sample;
        all += samples * optimize::total(device.states.front().seconds).per_sample;
      }
    }
  return all > 0 ? std::min(1.0, low / all) : 1;
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
      if (!used.contains(node_name(node, copy))) watts += node.watts_when_unused();
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

  const Subject subject{graph, recipe, platform, profiles, options, problem};
  std::optional<Candidate> best;
  const auto consider = [&](std::optional<Candidate> made) {
    const auto rank = [&](const Candidate& each) {
      return std::pair(excess(problem, each.outcome, request.limits),
                       value_of(each.outcome, request.objective));
    };
    if (made && (!best || rank(*made) < rank(*best))) best = std::move(made);
  };
  for (const Choice& choice : found.best) {
    if (excess(problem, choice.outcome, request.limits) > 0) continue;
    consider(candidate(subject, choice));
    if (best && best->nodes > most_simulated_nodes) break;
  }
  std::size_t pipelines = 0;
  for (const optimize::Pipeline& each : best_pipelines(problem, request.objective, request.limits,
                                                       most_stages, simulated_pipelines)) {
    if (excess(problem, each.outcome, request.limits) > 0 ||
        value_of(each.outcome, request.objective) >
            worth_simulating * value_of(found.best.front().outcome, request.objective))
      continue;
    consider(candidate(subject, each));
    ++pipelines;
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
  made.simulated = best->nodes <= most_simulated_nodes;
  made.predicted = best->outcome;
  made.modelled = best->modelled;
  made.has_prices = problem.money_per_joule > 0 ||
                    std::ranges::any_of(problem.nodes, [](const optimize::NodeKind& node) {
                      return node.money_per_s > 0;
                    });
  made.bound = lower_bounds(problem, request.limits);
  const double bound = proven(problem, request.limits, request.objective, made.bound,
                              value_of(made.predicted, request.objective));
  made.gap = bound > 0 ? value_of(made.predicted, request.objective) / bound - 1 : 0;
  made.exchange_bytes = best->choice && best->nodes > 1 ? problem.gradient_bytes() : 0;
  made.low_share = low_share(problem, platform, *best);
  made.devices = roles(platform, problem, *best, made.predicted.step_s);
  made.reasons.push_back(
      found.every_choice
          ? "all " + std::to_string(found.tried) + " choices of devices and states were compared"
          : std::to_string(found.tried) + " choices of devices and states were compared, not all");
  if (!made.simulated)
    made.reasons.push_back("more than " + std::to_string(most_simulated_nodes) +
                           " nodes: predicted by the model, not simulated");
  if (best->pipeline)
    made.reasons.push_back("a pipeline of " + std::to_string(best->pipeline->stages.size()) +
                           " stages in " + std::to_string(best->pipeline->chunks) +
                           " chunks was better than shares of the batch");
  else if (pipelines > 0)
    made.reasons.push_back(std::to_string(pipelines) +
                           " pipelines were simulated too and were not better");
  tell_of_waiting(made.reasons, made.devices);
  if (best->choice)
    tell_of_resting(made.reasons, problem, *best->choice, request.objective, request.limits);
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
