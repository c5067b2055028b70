#include "app/machine_bound.h"

#include <algorithm>
#include <limits>
#include <set>

#include "graph/program.h"
#include "optimize/bound.h"
#include "plan/make_plan.h"
#include "tasks/costs.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

// All work of a plan must rest on measurements of sizes near to its own.
constexpr double all_known = 0.999;

// Seconds of a worker for a sample, in a plan of one CPU group: lower ends.
struct PlanLow {
  double sample_s = 0;
  bool known = false;
};

PlanLow low_of(const TrainJob& job, const Plan& plan) {
  const Blueprint blueprint = make_blueprint(job.graph, plan, numbers_of(job.recipe), true);
  const TaskList list = lower(blueprint, ListKind::train);
  const ProfileCosts costs(blueprint, job.profile, job.recipe.data);
  const DeviceGroup& group = *groups_of(plan).front();
  double low = 0;
  TaskList work;
  for (const Task& task : list.tasks)
    if (task.flops > 0) {
      low += costs.of(task, group.workers).low;
      work.tasks.push_back(task);
    }
  const auto samples = static_cast<double>(share_of(group));
  // A group of cores has room for so many workers of this size of team.
  const int room = std::max(group.workers, plan.cpus / group.team);
  return {low / samples / room, costs.measured_shares(work, group.workers).near_size >= all_known};
}

}  // namespace

double least_work_s(const TrainJob& job) {
  const PricedStep step = priced_step(job);
  const auto groups = groups_of(job.plan);
  double low = 0;
  for (const Task& task : step.list().tasks)
    if (task.flops > 0) low += step.costs().of(task, groups[task.group.value]->workers).low;
  return low;
}

std::optional<double> step_bound_here(const TrainJob& job) {
  const auto groups = groups_of(job.plan);
  if (!job.profile || groups.size() != 1 || groups.front()->kind != DeviceKind::cpu)
    return std::nullopt;
  const int cpus = std::max(job.plan.cpus, threads_of(job.plan));
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](Plan plan) {
    plan.cpus = cpus;
    const PlanLow low = low_of(job, plan);
    if (low.known) least = std::min(least, low.sample_s);
  };
  consider(job.plan);
  std::set<int> teams{1, cpus};
  for (const int team : teams)
    for (const char* segments : {"step", "block"})
      for (std::int64_t chunks = 1;
           chunks <= std::min<std::int64_t>(granules_of(job.graph, job.recipe.batch), 4 * cpus);
           chunks *= 2) {
        PlanOptions options;
        options.workers = cpus;
        options.team = team;
        options.layout = groups.front()->layout;
        options.chunks = {{chunks}};
        options.segments = segments;
        consider(make_plan(job.graph, job.recipe, options));
      }
  if (!(least < std::numeric_limits<double>::infinity())) return std::nullopt;
  optimize::Problem problem;
  problem.batch = problem.images = job.recipe.batch;
  optimize::NodeKind node;
  optimize::Device cores;
  optimize::DeviceState state;
  state.seconds = state.least.seconds = {{0, least}};
  state.least.joules = {{0, 0}};
  cores.states = {state};
  node.devices = {cores};
  problem.nodes = {node};
  return optimize::lower_bound(problem, optimize::Quantity::step_s, {});
}

}  // namespace regatta::app
