#include "app/optimized_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "app/optimized_reasons.h"
#include "base/error.h"
#include "optimize/search.h"
#include "report/text.h"

namespace regatta::app {
namespace {

using optimize::Choice;
using optimize::Limits;
using optimize::Outcome;
using optimize::Problem;
using optimize::Quantity;

constexpr std::size_t simulated_choices = 5;  // the best few by the model
constexpr std::size_t simulated_with_cores = 2;
constexpr std::size_t most_plain_choices = 6;  // all devices, and single ones
// Nodes of all choices that are simulated: a simulation takes longer the more there are.
constexpr std::int64_t most_nodes_in_all = 160;
// Pipelines that the model finds no more than so many times as bad as the best shares are simulated
// too: it knows less of them.
constexpr std::size_t simulated_pipelines = 16, most_stages = 4;
constexpr double worth_simulating = 2;

std::string joules_text(double joules) { return formatted("%.4g J", joules); }

double steps_of(const Problem& problem) { return static_cast<double>(problem.steps()); }

// --- what cannot be ------------------------------------------------------------------------------

bool has_prices(const Problem& problem) {
  return problem.money_per_joule > 0 ||
         std::ranges::any_of(problem.nodes,
                             [](const optimize::NodeKind& node) { return node.money_per_s > 0; });
}

// Without any price, all plans would cost nothing.
void require_prices(const Problem& problem, const std::string& platform,
                    const OptimizeRequest& request) {
  if (has_prices(problem)) return;
  if (request.objective == optimize::Objective::cost || request.limits.money)
    throw InputError("platform '" + platform +
                     "' has no price: give its nodes a price, or the platform an energy_price");
}

// Throws if a bound proves that no plan keeps the limits.
void require_possible(const Problem& problem, std::int64_t images, const Limits& limits) {
  const double steps = steps_of(problem);
  const std::string run =
      " for " + std::to_string(images) + " images in " + std::to_string(problem.steps()) + " steps";
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

// Throws if memory cannot hold the batch.
void require_found(const Problem& problem, const optimize::Found& found) {
  if (!found.best.empty()) return;
  std::int64_t room = 0;
  for (const optimize::NodeKind& node : problem.nodes)
    for (const optimize::Device& device : node.devices)
      if (device.offered)
        room += node.count * device.units * std::min(device.most_samples, problem.batch);
  throw InputError("--batch " + std::to_string(problem.batch * problem.samples_per_group) +
                   ": the memory of all devices together holds " +
                   std::to_string(room * problem.samples_per_group) +
                   " samples; use a smaller --batch");
}

// Throws if no plan keeps the limits. `best`: the best of those that were simulated.
void require_within(const Problem& problem, const Limits& limits, const optimize::Found& found,
                    const std::optional<Candidate>& best) {
  const double modelled = excess(problem, found.best.front().outcome, limits);
  const Outcome& nearest = best ? best->outcome : found.best.front().outcome;
  const double over = best ? excess(problem, nearest, limits) : modelled;
  if (over <= 0) return;
  const double steps = steps_of(problem);
  if (modelled <= 0)
    throw InputError("the best plans keep the limits by the model, but miss one by " +
                     percent_text(over) + " when they are simulated: " +
                     formatted("%.4g s and %.4g J; loosen it", nearest.step_s * steps,
                               nearest.energy_j * steps));
  throw InputError("no plan was found within the limits: the nearest takes " +
                   formatted("%.4g s, %.4g J and draws %.4g W at most", nearest.step_s * steps,
                             nearest.energy_j * steps, nearest.peak_watts) +
                   ", " + percent_text(over) + " beyond one of them; loosen it");
}

// --- the best few, simulated ---------------------------------------------------------------------

// Choices in which cores compute beside the GPUs of their node. The model thinks them better than
// they are, because cores also feed GPUs: the simulation decides between them and the others.
void add_with_cores(const Problem& problem, const OptimizeRequest& request,
                    optimize::Found& found) {
  Problem all = problem;
  offer_all_devices(all);
  const bool same = std::ranges::equal(
      all.nodes, problem.nodes, [](const optimize::NodeKind& one, const optimize::NodeKind& other) {
        return std::ranges::equal(one.devices, other.devices, {}, &optimize::Device::offered,
                                  &optimize::Device::offered);
      });
  if (same) return;
  optimize::Found more = search(all, request.objective, request.limits, simulated_with_cores);
  found.tried += more.tried;
  found.every_choice = found.every_choice && more.every_choice;
  for (Choice& choice : more.best)
    if (std::ranges::none_of(found.best,
                             [&](const Choice& each) { return each.uses == choice.uses; }))
      found.best.push_back(std::move(choice));
}

struct Picked {
  std::optional<Candidate> best;
  std::size_t pipelines = 0;  // that were simulated
};

bool has_slow_cores(const Platform& platform) {
  return std::ranges::any_of(platform.nodes, [](const PlatformNode& node) {
    return std::ranges::any_of(
        node.groups, [](const PlatformGroup& group) { return group.slow_cores.has_value(); });
  });
}

// Whether it is for the cores of one node alone: some of them may rest in a plan with a pace.
bool cores_alone(const Platform& platform, const Choice& choice) {
  if (choice.uses.size() != 1 || choice.uses.front().nodes != 1) return false;
  const optimize::NodeUse& use = choice.uses.front();
  const PlatformNode& node = platform.nodes[static_cast<std::size_t>(use.kind)];
  int devices = 0, cores = 0;
  for (std::size_t d = 0; d < use.parts.size(); ++d) {
    devices += use.parts[d].units;
    if (node.groups[d].kind == DeviceKind::cpu) cores += use.parts[d].units;
  }
  return devices == 1 && cores == 1;
}

// Of the first node whose cores are unequal.
std::string told_chunks(const Plan& plan) {
  for (const DeviceGroup* group : groups_of(plan)) {
    if (group->powers.empty()) continue;
    std::string sizes;
    for (const std::int64_t chunk : group->chunks)
      sizes += (sizes.empty() ? "" : " + ") + std::to_string(chunk);
    return "each core computes one chunk, sized by its speed (" + sizes + " samples)";
  }
  return "";
}

Picked pick(const OptimizerSubject& subject, const optimize::Found& found,
            const OptimizeRequest& request) {
  const Problem& problem = subject.problem;
  Picked picked;
  const auto consider = [&](std::optional<Candidate> made) {
    const auto rank = [&](const Candidate& each) {
      return std::pair(excess(problem, each.outcome, request.limits),
                       value_of(each.outcome, request.objective));
    };
    if (made && (!picked.best || rank(*made) < rank(*picked.best))) picked.best = std::move(made);
  };
  const bool saves = request.objective != optimize::Objective::time || request.limits.joules ||
                     request.limits.money;
  std::optional<double> longest_step_s;
  if (request.limits.seconds) longest_step_s = *request.limits.seconds / steps_of(problem);
  const Placement placement = request.placement.value_or(Placement::dynamic);
  const bool paces = placement == Placement::dynamic;  // others cannot follow a pace
  const bool unequal = has_slow_cores(subject.platform);
  // In a plan with chunks sized by speed each chunk stays with its worker; the order of all its
  // tasks may be fixed too.
  const bool may_place = !request.placement || *request.placement != Placement::dynamic;
  const bool may_order = !request.placement || *request.placement == Placement::fixed;
  const auto consider_variants = [&](const std::optional<Candidate>& made) {
    if (!made || !(saves || unequal)) return;
    for (Candidate& each : variants_of(subject, *made, saves && paces, longest_step_s))
      consider(std::move(each));
    if (may_place && unequal)
      for (Candidate& each : variants_by_speed(subject, *made)) {
        if (may_order) consider(variant_with_steps_last(subject, each));
        consider(std::move(each));
      }
  };
  // The model knows no pace, with which a step needs fewer joules and less money for energy: these
  // limits are for the simulation to judge.
  Limits with_pace = request.limits;
  with_pace.joules = with_pace.money = std::nullopt;
  const auto may_keep_limits = [&](const Choice& choice) {
    const bool paced = paces && cores_alone(subject.platform, choice);
    return excess(problem, choice.outcome, paced ? with_pace : request.limits) <= 0;
  };
  std::int64_t simulated = 0;  // nodes
  const auto affordable = [&](const Choice& choice) {
    std::int64_t nodes = 0;
    for (const optimize::NodeUse& use : choice.uses) nodes += use.nodes;
    if (simulated > 0 && simulated + nodes > most_nodes_in_all) return false;
    simulated += nodes;
    return true;
  };
  for (const Choice& choice : found.best) {
    if (!may_keep_limits(choice) || !affordable(choice)) continue;
    std::optional<Candidate> made = candidate(subject, choice);
    consider_variants(made);
    consider(std::move(made));
  }
  // So that no plan is worse than what anyone would try first, whatever the model thinks of it.
  std::size_t plain = 0;
  for (const Choice& choice : plain_choices(problem, request.objective, request.limits)) {
    const bool known = std::ranges::any_of(
        found.best, [&](const Choice& each) { return each.uses == choice.uses; });
    if (known || !may_keep_limits(choice) || ++plain > most_plain_choices || !affordable(choice))
      continue;
    std::optional<Candidate> made = candidate(subject, choice);
    consider_variants(made);
    if (made && made->nodes <= most_simulated_nodes) consider(std::move(made));
  }
  for (const optimize::Pipeline& each : best_pipelines(problem, request.objective, request.limits,
                                                       most_stages, simulated_pipelines)) {
    if (excess(problem, each.outcome, request.limits) > 0) continue;
    const Choice& shares = found.best.front();
    if (excess(problem, shares.outcome, request.limits) <= 0 &&
        value_of(each.outcome, request.objective) >
            worth_simulating * value_of(shares.outcome, request.objective))
      continue;
    // The model leaves out what a task costs however small it is: fewer chunks may be faster.
    for (const std::int64_t parts : {1, 2, 3}) {
      optimize::Pipeline cut = each;
      cut.chunks = each.chunks / parts;
      if (cut.chunks < 1) break;
      consider(candidate(subject, cut));
      ++picked.pipelines;
    }
  }
  return picked;
}

}  // namespace

Optimized optimized_plan(const Graph& graph, const Recipe& recipe, const Platform& platform,
                         const sim::Profiles& profiles, const NodeOptions& options,
                         const OptimizeRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  Problem problem = optimizer_problem(graph, recipe, platform, profiles, options);
  const std::int64_t images = request.images.value_or(recipe.batch);
  set_images(problem, images);
  require_prices(problem, platform.name, request);
  require_possible(problem, images, request.limits);
  optimize::Found found = search(problem, request.objective, request.limits, simulated_choices);
  add_with_cores(problem, request, found);
  require_found(problem, found);
  auto [best, pipelines] =
      pick({graph, recipe, platform, profiles, options, problem}, found, request);
  require_within(problem, request.limits, found, best);
  if (!best)
    throw InputError("--batch " + std::to_string(recipe.batch) +
                     " fits into the memory of no devices that were tried; use a smaller one");

  Optimized made;
  made.objective = request.objective;
  made.batch = recipe.batch;
  made.images = images;
  made.steps = problem.steps();
  made.simulated = best->nodes <= most_simulated_nodes;
  made.predicted = best->outcome;
  made.modelled = best->modelled;
  made.has_prices = has_prices(problem);
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
  if (best->plan.placement == Placement::fixed)
    made.reasons.emplace_back(
        "each core has its tasks in order, and takes steps of parameters when chunks are done");
  if (best->by_speed) made.reasons.push_back(told_chunks(best->plan));
  if (best->plan.pace_s > 0)
    made.reasons.push_back(formatted("a step may take %.4g s (its pace)", best->plan.pace_s) +
                           ": cores that need more joules rest when the others are in time");
  tell_reasons(made, problem, request.limits, best->choice, bound);
  made.plan = std::move(best->plan);
  made.plan_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return made;
}

}  // namespace regatta::app
