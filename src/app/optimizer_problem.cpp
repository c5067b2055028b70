#include "app/optimizer_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "app/least_work.h"
#include "app/optimizer_network.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/program.h"
#include "plan/segments.h"
#include "tune/plan_job.h"

namespace regatta::app {
namespace {

using optimize::CostLine;

// A share from which, with that of the whole batch, the cost of another sample is told.
std::int64_t smaller_share(std::int64_t batch) {
  std::int64_t smaller = 1;
  while (4 * smaller < batch) smaller *= 4;
  return smaller;
}

CostLine line_through(double x1, double y1, double x2, double y2) {
  const double slope = x2 > x1 ? (y2 - y1) / (x2 - x1) : 0;
  const double fixed = y2 - slope * x2;
  if (slope > 0 && fixed >= 0) return {fixed, slope};
  return {0, y2 / x2};
}

std::int64_t most_samples(const ShareCost& fewer, const ShareCost& more, std::int64_t batch) {
  if (more.room <= 0) return batch;
  const double per_sample = more.samples > fewer.samples
                                ? (more.bytes - fewer.bytes) / (more.samples - fewer.samples)
                                : more.bytes / more.samples;
  if (more.bytes <= more.room || per_sample <= 0) return batch;
  const double samples = more.samples + (more.room - more.bytes) / per_sample;
  return static_cast<std::int64_t>(std::clamp(samples, 0.0, static_cast<double>(batch)));
}

struct Measured {
  optimize::Device device;
  ShareCost whole;  // of the whole batch
};

// How many cores compute a chunk of a share together: all of them, since fewer chunks meet, unless
// only the costs of single cores were measured, or these are measured to be faster.
int team_of(const DeviceMeasure& measure, const PlatformGroup& group, std::int64_t batch) {
  if (group.kind != DeviceKind::cpu || group.slow_cores || group.count == 1) return 0;
  const ShareCost together = measure.of_share(batch, group.count);
  const ShareCost apart = measure.of_share(batch, 1);
  if (apart.measured < known_enough) return group.count;
  const bool faster = sum(apart.seconds) < sum(together.seconds);
  return together.measured < known_enough || faster ? 1 : group.count;
}

Measured measured(const DeviceMeasure& measure, const PlatformGroup& group, std::int64_t batch,
                  double accumulate) {
  const bool cpu = group.kind == DeviceKind::cpu;
  const int team = team_of(measure, group, batch);
  const ShareCost more = measure.of_share(batch, team);
  const ShareCost fewer = measure.of_share(smaller_share(batch), team);
  Measured made{{}, more};
  made.device.group = group.name;
  made.device.units = cpu ? 1 : group.count;
  made.device.team = team;
  made.device.most_samples = most_samples(fewer, more, batch);
  const ShareCost all = measure.of_all(batch);
  if (made.device.most_samples < batch) {
    const auto few = static_cast<std::int64_t>(fewer.samples);
    made.device.most_alone = most_samples(measure.of_all(few), all, batch);
  }
  // Joules for what a core at full speed computes in a second, on the cores that need the fewest.
  double core_watts = group.watts.active - group.watts.idle;
  if (const auto& slow = group.slow_cores)
    core_watts = std::min(core_watts, slow->slow * (slow->active_watts - group.watts.idle));

  std::vector<CostLine> lines;  // by segment, at full speed, before updates
  for (std::size_t g = 0; g < more.seconds.size(); ++g)
    lines.push_back(line_through(fewer.samples, fewer.seconds[g], more.samples, more.seconds[g]));
  const double alone_s = std::min(sum(all.seconds), measure.by_speed(batch));
  const LeastWork least(measure, group, batch);
  const auto state_of = [&](const PowerState& power, double busy_watts, double sample_watts) {
    optimize::DeviceState state;
    state.name = power.name;
    state.idle_watts = power.watts.idle * (cpu ? group.count : 1);
    state.busy_watts = busy_watts;
    state.alone_s = alone_s / power.speed + sum(all.updates);
    for (std::size_t g = 0; g < lines.size(); ++g)  // memory keeps its speed
      state.seconds.push_back(
          {lines[g].fixed / power.speed + more.updates[g], lines[g].per_sample / power.speed});
    state.least = least.costs(&ShareCost::low, lines, power.speed, sample_watts, accumulate);
    state.certain = least.costs(&ShareCost::typical, lines, power.speed, sample_watts, accumulate);
    return state;
  };
  made.device.states.push_back(
      state_of({.name = {}, .speed = 1, .watts = group.watts},
               cpu ? group.busy_watts() : group.watts.active - group.watts.idle, core_watts));
  for (const PowerState& each : group.states) {
    const double watts = each.watts.active - each.watts.idle;
    made.device.states.push_back(state_of(each, watts * (cpu ? group.count : 1), watts));
  }
  return made;
}

std::vector<optimize::SegmentTraffic> traffic_of(const Graph& graph, const Recipe& recipe,
                                                 const Plan& plan, const ShareCost& costs) {
  const Blueprint blueprint = make_blueprint(graph, plan, numbers_of(recipe), true);
  std::vector<optimize::SegmentTraffic> traffic(plan.segments.size());
  for (const Bucket& bucket : blueprint.buckets)
    traffic[bucket.segment.value].gradient_bytes +=
        static_cast<double>(blueprint.wire_bytes(bucket));
  double all = 0, done = 0;
  for (std::size_t g = 0; g < traffic.size(); ++g) {
    all += costs.seconds[g];
    done += costs.forward[g];
  }
  for (std::size_t g = traffic.size(); g-- > 0;) {
    done += costs.seconds[g] - costs.forward[g];
    traffic[g].ready = all > 0 ? std::min(1.0, done / all) : 1;
    for (const Node& node : graph.nodes()) {
      if (node.id > plan.segments[g].last || node.id == graph.input()) continue;
      const bool crosses = std::ranges::any_of(
          graph.users(node.id), [&](NodeId user) { return user > plan.segments[g].last; });
      if (crosses)
        traffic[g].border_bytes += static_cast<double>(node.shape.elements()) * sizeof(float);
    }
  }
  return traffic;
}

}  // namespace

optimize::Problem optimizer_problem(const Graph& graph, const Recipe& recipe,
                                    const Platform& platform, const sim::Profiles& profiles,
                                    const NodeOptions& options) {
  constexpr double joules_per_kilowatt_hour = 3.6e6, seconds_per_hour = 3600;
  optimize::Problem problem;
  problem.samples_per_group = granule_of(graph);
  if (recipe.batch % problem.samples_per_group != 0)
    throw InputError(
        "--objective wants a batch of whole groups: --batch " + std::to_string(recipe.batch) +
        " is no multiple of --batch-norm group:" + std::to_string(problem.samples_per_group));
  problem.batch = problem.images = recipe.batch / problem.samples_per_group;
  problem.money_per_joule = platform.energy_price / joules_per_kilowatt_hour;
  std::optional<ShareCost> usual;  // of the first device
  for (const PlatformNode& node : platform.nodes) {
    optimize::NodeKind kind;
    kind.name = node.name;
    kind.count = node.count;
    kind.idle_watts = node.idle_watts();
    kind.unused_watts = node.watts_unused();
    const bool gpus = std::ranges::any_of(
        node.groups, [](const PlatformGroup& each) { return each.kind == DeviceKind::cuda; });
    for (const PlatformGroup& group : node.groups) {
      const bool gpu = group.kind == DeviceKind::cuda;
      const DeviceMeasure measure(graph, recipe, node,
                                  gpu && group.count > 1 ? group.name + "-0" : group.name, profiles,
                                  options);
      Measured made =
          measured(measure, group, problem.batch, static_cast<double>(recipe.accumulate));
      made.device.own_gradients = gpu;
      made.device.offered = gpu == gpus;
      if (!usual) usual = made.whole;
      kind.devices.push_back(std::move(made.device));
    }
    if (node.price) {
      const Price& price = *node.price;
      kind.money_per_s = price.rented()
                             ? price.per_hour / seconds_per_hour
                             : price.purchase / (price.lifetime_hours * seconds_per_hour);
      kind.least_rent_s = price.minimum_hours * seconds_per_hour;
      kind.pays_energy = !price.rented();
    }
    problem.nodes.push_back(std::move(kind));
  }
  Plan plan;
  plan.segments = segments_named(graph, options.plan.segments.value_or("block"));
  DeviceGroup any;
  any.chunks = {problem.samples_per_group};
  plan.nodes = {{"any", {any}}};
  problem.segments = traffic_of(graph, recipe, plan, *usual);
  for (optimize::SegmentTraffic& segment : problem.segments)
    segment.border_bytes *= static_cast<double>(problem.samples_per_group);
  add_network(problem, platform);
  return problem;
}

void set_images(optimize::Problem& problem, std::int64_t images) {
  problem.images =
      images / problem.samples_per_group + (images % problem.samples_per_group != 0 ? 1 : 0);
}

void offer_all_devices(optimize::Problem& problem) {
  for (optimize::NodeKind& node : problem.nodes)
    for (optimize::Device& device : node.devices) device.offered = true;
}

std::vector<DeviceShare> devices_of(const optimize::Problem& problem, const Platform& platform,
                                    const optimize::Choice& choice) {
  std::vector<DeviceShare> devices;
  std::map<int, std::int64_t> taken;  // nodes, by kind
  for (std::size_t u = 0; u < choice.uses.size(); ++u) {
    const optimize::NodeUse& use = choice.uses[u];
    const PlatformNode& node = platform.nodes[static_cast<std::size_t>(use.kind)];
    const optimize::NodeKind& kind = problem.nodes[static_cast<std::size_t>(use.kind)];
    for (std::int64_t i = 0; i < use.nodes; ++i) {
      const std::int64_t copy = taken[use.kind]++;
      for (std::size_t d = 0; d < use.parts.size(); ++d)
        for (int unit = 0; unit < use.parts[d].units; ++unit) {
          const optimize::Portion& portion = choice.portions[u][d];
          const optimize::Device& device = kind.devices[d];
          devices.push_back(
              {node.count == 1 ? node.name : node.name + "-" + std::to_string(copy),
               device.units > 1 ? device.group + "-" + std::to_string(unit) : device.group,
               problem.samples_per_group *
                   (portion.share + (i * use.parts[d].units + unit < portion.one_more ? 1 : 0)),
               device.states[static_cast<std::size_t>(use.parts[d].state)].name,
               optimize::alone(choice.uses) ? 0 : device.team});
        }
    }
  }
  return devices;
}

std::vector<DeviceShare> devices_of(const optimize::Problem& problem, const Platform& platform,
                                    const optimize::Pipeline& pipeline) {
  std::vector<DeviceShare> devices;
  std::map<std::pair<int, int>, int> taken;  // units, by kind and device
  for (const optimize::StageUse& stage : pipeline.stages) {
    const PlatformNode& node = platform.nodes[static_cast<std::size_t>(stage.kind)];
    const optimize::Device& device = problem.nodes[static_cast<std::size_t>(stage.kind)]
                                         .devices[static_cast<std::size_t>(stage.device)];
    const int number = taken[{stage.kind, stage.device}]++;
    const int copy = number / device.units, unit = number % device.units;
    devices.push_back({node.count == 1 ? node.name : node.name + "-" + std::to_string(copy),
                       device.units > 1 ? device.group + "-" + std::to_string(unit) : device.group,
                       problem.samples_per_group * problem.batch,
                       device.states[static_cast<std::size_t>(stage.state)].name, device.team});
  }
  return devices;
}

}  // namespace regatta::app
