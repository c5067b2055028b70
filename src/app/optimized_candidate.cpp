#include "app/optimized_candidate.h"

#include <algorithm>
#include <array>
#include <set>

#include "app/chunks_by_speed.h"
#include "app/steps_last.h"
#include "base/error.h"
#include "sim/simulate.h"

namespace regatta::app {
namespace {

using optimize::Choice;
using optimize::Outcome;
using optimize::Problem;

double rent_of(const Problem& problem, const Plan& plan, const Platform& platform, double step_s) {
  std::set<std::string> used;
  for (const PlanNode& node : plan.nodes) used.insert(node.name);
  double rent = 0;
  for (std::size_t k = 0; k < platform.nodes.size(); ++k)
    for (int copy = 0; copy < platform.nodes[k].count; ++copy)
      if (used.contains(node_name(platform.nodes[k], copy)))
        rent +=
            problem.nodes[k].money_per_s *
            std::max(step_s, problem.nodes[k].least_rent_s / static_cast<double>(problem.steps()));
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

std::int64_t nodes_of(const std::vector<DeviceShare>& devices) {
  std::set<std::string> nodes;
  for (const DeviceShare& each : devices) nodes.insert(each.node);
  return std::ssize(nodes);
}

// False: the model's straight line of memory was too kind.
bool simulate(const OptimizerSubject& subject, Candidate& made) {
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
  made.outcome = corrected(subject.problem, made.plan, subject.platform, made.modelled, step_s,
                           played.energy_j.front());
  return true;
}

}  // namespace

std::optional<Candidate> candidate(const OptimizerSubject& subject, const Choice& choice) {
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

std::optional<Candidate> candidate(const OptimizerSubject& subject,
                                   const optimize::Pipeline& pipeline) {
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
  // Stages have teams of all cores or, if only the costs of single cores are known, none.
  if (std::ranges::any_of(made.devices, [](const DeviceShare& each) { return each.team == 1; }))
    own.plan.team = 1;
  made.plan = plan_over_stages(subject.graph, subject.recipe, subject.platform, stages, own);
  for (PlanNode& node : made.plan.nodes)
    for (DeviceGroup& group : node.groups)
      for (const DeviceShare& each : made.devices)
        if (each.node == node.name && each.group == group.name) group.state = each.state;
  if (!simulate(subject, made)) return std::nullopt;
  return made;
}

std::vector<Candidate> variants_of(const OptimizerSubject& subject, const Candidate& made,
                                   bool paces, std::optional<double> longest_step_s) {
  constexpr std::array<double, 6> times_as_long{1.1, 1.25, 1.5, 2, 3, 4};
  constexpr double nearly = 0.98;  // a step's last task may end after the pace: leave some room
  std::vector<Candidate> found;
  if (made.pipeline || made.devices.size() != 1) return found;
  // Executors keep a pace only where a step is one list of tasks that train.
  if (!waits_at_gates(made.plan) || subject.recipe.accumulate > 1) paces = false;
  const DeviceGroup& group = made.plan.nodes.front().groups.front();
  if (group.kind != DeviceKind::cpu || group.workers < 2 || !group.state.empty()) return found;
  const NamedNode node = chosen_nodes(subject.platform, {made.devices.front().node}).front();
  const PlatformGroup& cores = *group_named(*node.node, group.name);
  std::set<std::vector<std::int64_t>> cuts{group.chunks};
  if (!subject.options.plan.chunks)
    cuts.insert(equal_chunks(
        share_of(group),
        std::min(chunks_of_a_worker * group.workers, granules_of(subject.graph, share_of(group))),
        granule_of(subject.graph)));
  for (const std::vector<std::int64_t>& chunks : cuts) {
    Candidate cut = made;
    DeviceGroup& own = cut.plan.nodes.front().groups.front();
    own.powers = powers_on(cores, own);
    own.chunks = chunks;
    own.lanes = std::min(own.workers, static_cast<int>(chunks.size()));
    if (!simulate(subject, cut)) continue;
    std::set<double> tried;
    for (const double times : times_as_long) tried.insert(times * cut.outcome.step_s);
    if (longest_step_s) {
      tried.erase(tried.lower_bound(nearly * *longest_step_s), tried.end());
      tried.insert(nearly * *longest_step_s);
    }
    for (const double pace : tried) {
      if (!paces || pace <= cut.outcome.step_s) continue;
      Candidate slower = cut;
      slower.plan.pace_s = pace;
      if (simulate(subject, slower)) found.push_back(std::move(slower));
    }
    found.push_back(std::move(cut));
  }
  return found;
}

std::vector<Candidate> variants_by_speed(const OptimizerSubject& subject, const Candidate& made) {
  if (subject.options.plan.chunks || made.nodes > most_simulated_nodes) return {};
  std::vector<Candidate> found;
  for (SpeedChunks& each : chunks_by_speed(subject.graph, subject.recipe, subject.platform,
                                           subject.profiles, made.plan)) {
    Candidate sized = made;
    sized.plan = std::move(each.plan);
    sized.by_speed = true;
    if (simulate(subject, sized)) found.push_back(std::move(sized));
  }
  return found;
}

std::optional<Candidate> variant_with_steps_last(const OptimizerSubject& subject,
                                                 const Candidate& made) {
  std::optional<Plan> plan =
      with_steps_last(subject.graph, subject.recipe, subject.platform, subject.profiles, made.plan);
  if (!plan) return std::nullopt;
  Candidate ordered = made;
  ordered.plan = std::move(*plan);
  if (!simulate(subject, ordered)) return std::nullopt;
  return ordered;
}

std::string node_name(const PlatformNode& node, int copy) {
  return node.count == 1 ? node.name : node.name + "-" + std::to_string(copy);
}

}  // namespace regatta::app
