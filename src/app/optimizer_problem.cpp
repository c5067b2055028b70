#include "app/optimizer_problem.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "app/optimizer_network.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/program.h"
#include "plan/segments.h"
#include "tune/plan_job.h"

namespace regatta::app {
namespace {

using optimize::CostLine;

// One device's costs of a share of some size, by segment.
struct ShareCost {
  double samples = 0;
  std::vector<double> seconds;     // of the device
  std::vector<double> low;         // likewise, lower ends
  std::vector<double> core_s_low;  // of all its cores together, or of the GPU
  std::vector<double> forward;     // seconds of these before any backward
  std::vector<double> updates;     // seconds of what follows the exchange
  double bytes = 0, room = 0;      // of memory
  double measured = 0;             // the part of all seconds whose costs were measured
};

double sum(const std::vector<double>& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

class DeviceMeasure {
 public:
  DeviceMeasure(const Graph& graph, const Recipe& recipe, const PlatformNode& node,
                const std::string& group, const sim::Profiles& profiles, const NodeOptions& options)
      : graph_(graph), recipe_(recipe), group_(group), profiles_(profiles), options_(options) {
    platform_.name = node.name;
    platform_.nodes = {node};
  }

  // A share among several nodes: in segments whose gradients leave one by one, cut where the nodes'
  // statistics meet. `team`: as in DeviceShare. Samples are counted in the batch norm's groups.
  ShareCost of_share(std::int64_t groups, int team) const { return of(groups, team, "block", 2); }
  // The same segments where no other node has samples of the batch.
  ShareCost of_stages(std::int64_t groups, int team) const { return of(groups, team, "block", 1); }
  // In a plan for this device alone.
  ShareCost of_all(std::int64_t groups) const { return of(groups, 0, "step", 1); }

 private:
  ShareCost of(std::int64_t groups, int team, const char* segmentation, int nodes) const {
    NodeOptions options = options_;
    options.plan.segments = options.plan.segments.value_or(segmentation);
    Platform alike = platform_;  // nodes with the same share
    alike.nodes.front().count = nodes;
    std::vector<DeviceShare> devices;
    for (const NamedNode& node : all_nodes(alike))
      devices.push_back({node.name, group_, groups * granule_of(graph_), {}, team});
    Plan plan = plan_for_devices(graph_, recipe_, alike, devices, options);
    // Loading is nobody's share: it must not be part of a task that computes. A GPU's never is.
    if (groups_of(plan).front()->kind == DeviceKind::cpu) plan.gather_phases = false;
    sim::PreparedFleet fleet(graph_, recipe_, alike, profiles_);
    fleet.follow(plan);
    const sim::RankKind& kind = fleet.fleet().kinds.front();
    const std::size_t segments = kind.blueprint->segments.size();
    ShareCost cost;
    cost.samples = static_cast<double>(groups);
    for (auto* each : {&cost.seconds, &cost.low, &cost.core_s_low, &cost.forward, &cost.updates})
      each->resize(segments, 0);
    const DeviceGroup& group = *groups_of(plan).front();
    const double workers = full_workers(group);
    for (const Task& task : kind.list->tasks) {
      if (task.on_host) continue;
      const Estimate took = kind.costs->of(task, group.workers);
      // Where workers hinder each other, fewer of them at a time may need less.
      const double low_alone = kind.costs->of(task, 1).low;
      const Action& first = task.actions.front();
      const bool of_bucket = first.phase == Phase::reduce || first.phase == Phase::measure ||
                             first.phase == Phase::update || first.phase == Phase::pack;
      const std::size_t segment = of_bucket
                                      ? kind.blueprint->buckets[first.bucket.value].segment.value
                                      : first.segment.value;
      if (task.flops <= 0) {
        cost.updates[segment] += took.seconds / workers;
        continue;
      }
      cost.seconds[segment] += took.seconds / workers;
      cost.low[segment] += std::min(took.low / workers, low_alone);
      cost.core_s_low[segment] += std::min(took.low, low_alone) * group.team;
      // A task that goes forward and back does a third of its work forward.
      const Phase last = task.actions.back().phase;
      const bool back = last == Phase::backward || last == Phase::weight_gradient;
      const bool ahead = first.phase == Phase::forward || first.phase == Phase::load;
      cost.forward[segment] += took.seconds / workers * (ahead ? (back ? 1.0 / 3 : 1) : 0);
    }
    const auto memory = fleet.memory(0);
    cost.bytes = static_cast<double>(memory.front().bytes);
    cost.room = static_cast<double>(memory.front().room);
    cost.measured = kind.costs->measured_shares(*kind.list, group.workers).any_size;
    return cost;
  }

  const Graph& graph_;
  const Recipe& recipe_;
  const std::string group_;
  const sim::Profiles& profiles_;
  Platform platform_;  // of this node
  NodeOptions options_;
};

// Sizes of shares whose costs are looked up: 1, 4, 16, ... and the batch.
std::vector<std::int64_t> sizes_up_to(std::int64_t batch) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < batch; size *= 4) sizes.push_back(size);
  sizes.push_back(batch);
  return sizes;
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

Measured measured(const DeviceMeasure& measure, const PlatformGroup& group, std::int64_t batch) {
  const bool cpu = group.kind == DeviceKind::cpu;
  std::vector<ShareCost> costs;
  const int team = team_of(measure, group, batch);
  for (const std::int64_t size : sizes_up_to(batch)) costs.push_back(measure.of_stages(size, team));
  const ShareCost& smaller = costs[costs.size() > 1 ? costs.size() - 2 : 0];
  const ShareCost more = measure.of_share(batch, team);
  const ShareCost fewer = measure.of_share(static_cast<std::int64_t>(smaller.samples), team);
  Measured made{{}, more};
  made.device.group = group.name;
  made.device.units = cpu ? 1 : group.count;
  made.device.team = team;
  made.device.most_samples = most_samples(fewer, more, batch);
  if (made.device.most_samples < batch) {
    const auto few = static_cast<std::int64_t>(fewer.samples);
    made.device.most_alone = most_samples(measure.of_all(few), measure.of_all(batch), batch);
  }

  optimize::DeviceState full;
  const double cores = cpu ? group.count : 1;
  full.idle_watts = group.watts.idle * cores;
  full.busy_watts = cpu ? group.busy_watts() : group.watts.active - group.watts.idle;
  // Joules for what a core at full speed computes in a second, on the cores that need the fewest.
  double core_watts = group.watts.active - group.watts.idle;
  if (const auto& slow = group.slow_cores)
    core_watts = std::min(core_watts, slow->slow * (slow->active_watts - group.watts.idle));
  // The bound takes for each sample the least that any size of share and, of cores, any team needs.
  if (cpu && group.count > 1)
    for (const std::int64_t size : sizes_up_to(batch))
      costs.push_back(measure.of_stages(size, team == group.count ? 1 : group.count));
  const ShareCost all = measure.of_all(batch);
  full.alone_s = sum(all.seconds) + sum(all.updates);
  for (std::size_t g = 0; g < more.seconds.size(); ++g) {
    CostLine line = line_through(fewer.samples, fewer.seconds[g], more.samples, more.seconds[g]);
    line.fixed += more.updates[g];
    double least = std::numeric_limits<double>::infinity(), core_s = least;
    for (const ShareCost& cost : costs) {
      least = std::min(least, cost.low[g] / cost.samples);
      core_s = std::min(core_s, cost.core_s_low[g] / cost.samples);
    }
    full.seconds.push_back(line);
    full.least.push_back({0, std::min(least, line.per_sample)});
    full.least_joules.push_back({0, core_s * core_watts});
  }
  // A step in one segment may need less than the sum of its blocks.
  const auto lower_to = [&](std::vector<CostLine>& least, double per_sample) {
    const double before = optimize::total(least).per_sample;
    for (CostLine& each : least)
      if (per_sample < before) each.per_sample *= per_sample / before;
  };
  lower_to(full.least, sum(all.low) / all.samples);
  lower_to(full.least_joules, sum(all.core_s_low) / all.samples * core_watts);
  made.device.states.push_back(full);
  for (const PowerState& each : group.states) {
    optimize::DeviceState state = full;
    state.name = each.name;
    state.idle_watts = each.watts.idle * cores;
    state.busy_watts = (each.watts.active - each.watts.idle) * cores;
    state.alone_s = (full.alone_s - sum(all.updates)) / each.speed + sum(all.updates);
    for (std::size_t g = 0; g < state.seconds.size(); ++g) {
      const double updates = more.updates[g];  // memory keeps its speed
      state.seconds[g] = {(full.seconds[g].fixed - updates) / each.speed + updates,
                          full.seconds[g].per_sample / each.speed};
      state.least[g].per_sample /= each.speed;
      state.least_joules[g].per_sample =
          full.busy_watts > 0
              ? full.least_joules[g].per_sample / each.speed * (state.busy_watts / full.busy_watts)
              : state.least[g].per_sample * state.busy_watts;
    }
    made.device.states.push_back(std::move(state));
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
      Measured made = measured(measure, group, problem.batch);
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
