#include "app/optimized_reasons.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/text.h"

namespace regatta::app {
namespace {

using optimize::Choice;
using optimize::Limits;
using optimize::Objective;
using optimize::Problem;

// Devices that reach the exchange later apart than this are told of.
constexpr double together = 0.05;

// Seconds that a device computes, and what of the network, if it is a stage.
struct Part {
  double busy_s = 0;
  std::string role = "compute";
};

Part part_of(const Problem& problem, const Candidate& made, const optimize::DeviceState& state,
             const DeviceShare& share) {
  if (!made.pipeline) {
    const std::int64_t groups = share.samples / problem.samples_per_group;
    return {
        optimize::share_seconds(problem, made.choice->uses, state).at(static_cast<double>(groups))};
  }
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
                      " would be " + percent_text(std::abs(change)) +
                      (change >= 0 ? " more" : " less") +
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
                    last->device + "' " + percent_text(1 - first->finish_s / last->finish_s) +
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

void tell_of_gap(Optimized& made, const Problem& problem, const Limits& limits, double bound) {
  Problem certain = problem;
  for (optimize::NodeKind& node : certain.nodes)
    for (optimize::Device& device : node.devices)
      for (optimize::DeviceState& state : device.states) state.least = state.certain;
  const double model = value_of(made.modelled, made.objective);
  const double sharp =
      proven(certain, limits, made.objective, lower_bounds(certain, limits), model);
  if (!(bound > 0) || !std::isfinite(sharp) || sharp <= 0) return;
  made.gap_parts = {sharp / bound - 1, model / sharp - 1,
                    value_of(made.predicted, made.objective) / model - 1};
  made.reasons.push_back(
      "the gap of " + percent_text(made.gap) + " is made of intervals of costs (" +
      percent_text(made.gap_parts->intervals) + "), whole devices and samples and the exchange (" +
      percent_text(made.gap_parts->whole) + ")" +
      (made.simulated
           ? ", and what the simulation adds (" + percent_text(made.gap_parts->simulation) + ")"
           : ""));
}

}  // namespace

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
          const double rest = idle > 0 ? node.watts_unused() / idle : 0;
          role.energy_j =
              state->idle_watts * (on ? 1 : rest) * step_s + state->busy_watts * role.finish_s;
          all.push_back(std::move(role));
        }
      }
    }
  }
  return all;
}

double low_share(const Problem& problem, const Platform& platform, const Candidate& made) {
  double low = 0, all = 0;
  for (const DeviceShare& share : made.devices)
    for (std::size_t k = 0; k < platform.nodes.size(); ++k) {
      const PlatformNode& node = platform.nodes[k];
      bool here = false;
      for (int copy = 0; copy < node.count; ++copy) here |= share.node == node_name(node, copy);
      for (std::size_t d = 0; d < node.groups.size() && here; ++d) {
        const optimize::Device& device = problem.nodes[k].devices[d];
        if (share.group != device.group && !share.group.starts_with(device.group + "-")) continue;
        const auto samples = static_cast<double>(share.samples);
        const optimize::DeviceState& full = device.states.front();
        const bool alone = full.alone_s > 0 && made.choice && optimize::alone(made.choice->uses);
        low += samples * optimize::total(full.least.seconds).per_sample;
        all += alone ? full.alone_s : samples * optimize::total(full.seconds).per_sample;
        for (std::size_t g = 0; alone && g < full.seconds.size(); ++g)
          low += full.least.update_seconds(g);
      }
    }
  return all > 0 ? std::min(1.0, low / all) : 1;
}

double proven(const Problem& problem, const Limits& limits, Objective objective,
              const optimize::Bound& bound, double best_known) {
  return objective == Objective::edp ? optimize::edp_bound(problem, limits, best_known)
                                     : bound_of(bound, objective);
}

void tell_reasons(Optimized& made, const Problem& problem, const Limits& limits,
                  const std::optional<Choice>& choice, double bound) {
  if (choice) {
    tell_of_waiting(made.reasons, made.devices);
    tell_of_resting(made.reasons, problem, *choice, made.objective, limits);
  }
  tell_of_gap(made, problem, limits, bound);
}

}  // namespace regatta::app
