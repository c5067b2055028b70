#include "app/optimizer_problem.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "app/chunks_by_speed.h"
#include "app/optimizer_network.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/program.h"
#include "plan/segments.h"
#include "tasks/placement.h"
#include "tune/plan_job.h"

namespace regatta::app {
namespace {

using optimize::CostLine;

// What a device needs at least for its part of a step, in whatever order its workers do it and
// however many of them work at a time; by segment.
struct Work {
  std::vector<double> seconds, core_s;          // of the device, and of all its cores together
  std::vector<double> update_s, update_core_s;  // of the step of the parameters
  double load_s = 0, load_core_s = 0;           // of loading the samples
  double meeting_s = 0, meeting_core_s = 0;     // where gradients and statistics of chunks meet
  double chain_s = 0;  // of the first chunk, forward and back, on the fastest worker

  explicit Work(std::size_t segments = 0)
      : seconds(segments), core_s(segments), update_s(segments), update_core_s(segments) {}
};

// One device's costs of a share of some size, by segment.
struct ShareCost {
  double samples = 0;
  std::vector<double> seconds;  // of the device
  std::vector<double> forward;  // seconds of these before any backward
  std::vector<double> updates;  // seconds of what follows the exchange
  Work low, typical;            // by the lower ends of costs, and by costs as they are
  int lanes = 1, team = 1;      // chunks that may be computed at a time, and cores of each
  double bytes = 0, room = 0;   // of memory
  double measured = 0;          // the part of all seconds whose costs were measured
};

// Batches of more samples are bounded without the costs of every size of chunk.
constexpr std::int64_t most_chunk_sizes = 1024;

double sum(const std::vector<double>& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

// How a device computes a share.
struct Cut {
  std::int64_t groups = 1;  // the share, counted in the batch norm's groups
  const char* segments = "block";
  int team = 0;             // as in DeviceShare
  int nodes = 1;            // that have such a share each
  std::int64_t chunks = 0;  // equal ones; 0: as plans have them unasked
  int workers = 0;          // at most so many of the cores; 0: all
};

// Numbers of workers of a group that may be at work at a time, with their speed together: those
// between them are no faster for their number. The fastest work first.
std::vector<std::pair<int, double>> busy_workers(const DeviceGroup& group) {
  std::vector<double> speeds(static_cast<std::size_t>(group.workers), 1);
  for (std::size_t w = 0; w < group.powers.size(); ++w) speeds[w] = 1 / group.powers[w].slow;
  std::ranges::sort(speeds, std::greater<>());
  std::vector<std::pair<int, double>> found;
  double together = 0;
  for (std::size_t w = 0; w < speeds.size(); ++w) {
    together += speeds[w];
    if (w == 0 || w + 1 == speeds.size() || speeds[w + 1] != speeds[w])
      found.emplace_back(static_cast<int>(w) + 1, together);
  }
  return found;
}

class DeviceMeasure {
 public:
  DeviceMeasure(const Graph& graph, const Recipe& recipe, const PlatformNode& node,
                const std::string& group, const sim::Profiles& profiles, const NodeOptions& options)
      : graph_(graph), recipe_(recipe), group_(group), profiles_(profiles), options_(options) {
    platform_.name = node.name;
    platform_.nodes = {node};
  }

  // A share among several nodes: in segments whose gradients leave one by one, cut where the nodes'
  // statistics meet.
  ShareCost of_share(std::int64_t groups, int team) const {
    return of({.groups = groups, .team = team, .nodes = 2});
  }
  // In a plan for this device alone.
  ShareCost of_all(std::int64_t groups) const { return of({.groups = groups, .segments = "step"}); }

  ShareCost of(const Cut& cut) const {
    Platform alike = platform_;  // nodes with the same share
    alike.nodes.front().count = cut.nodes;
    const Plan plan = plan_of(cut, alike);
    sim::PreparedFleet fleet(graph_, recipe_, alike, profiles_);
    fleet.follow(plan);
    const sim::RankKind& kind = fleet.fleet().kinds.front();
    const std::size_t segments = kind.blueprint->segments.size();
    ShareCost cost;
    cost.samples = static_cast<double>(cut.groups);
    for (auto* each : {&cost.seconds, &cost.forward, &cost.updates}) each->resize(segments, 0);
    cost.low = cost.typical = Work(segments);
    const DeviceGroup& group = *groups_of(plan).front();
    cost.lanes = group.lanes;
    cost.team = group.team;
    const double workers = full_workers(group);
    for (const Task& task : kind.list->tasks) {
      add_work(cost, task, kind, group);
      if (task.on_host) continue;
      const double took = kind.costs->of(task, group.workers).seconds / workers;
      const std::size_t segment = segment_of(task, *kind.blueprint);
      if (task.flops <= 0) {
        cost.updates[segment] += took;
        continue;
      }
      cost.seconds[segment] += took;
      // A task that goes forward and back does a third of its work forward.
      const Phase first = task.actions.front().phase, last = task.actions.back().phase;
      const bool back = last == Phase::backward || last == Phase::weight_gradient;
      const bool ahead = first == Phase::forward || first == Phase::load;
      cost.forward[segment] += took * (ahead ? (back ? 1.0 / 3 : 1) : 0);
    }
    const auto memory = fleet.memory(0);
    cost.bytes = static_cast<double>(memory.front().bytes);
    cost.room = static_cast<double>(memory.front().room);
    cost.measured = kind.costs->measured_shares(*kind.list, group.workers).any_size;
    return cost;
  }

  // Seconds of computing in a plan for this device alone whose chunks are sized by the speeds of
  // its cores. Infinite: there is no such plan.
  double by_speed(std::int64_t groups) const {
    double least = std::numeric_limits<double>::infinity();
    if (options_.plan.chunks) return least;
    const Plan plan = plan_of({.groups = groups, .segments = "step"}, platform_);
    for (const SpeedChunks& each : chunks_by_speed(graph_, recipe_, platform_, profiles_, plan))
      least = std::min(least, each.shares.way);
    return least;
  }

 private:
  Plan plan_of(const Cut& cut, const Platform& platform) const {
    NodeOptions options = options_;
    options.plan.segments = options.plan.segments.value_or(cut.segments);
    if (cut.chunks > 0) options.plan.chunks = {{cut.chunks}};
    if (cut.workers > 0) options.workers = cut.workers;
    std::vector<DeviceShare> devices;
    for (const NamedNode& node : all_nodes(platform))
      devices.push_back({node.name, group_, cut.groups * granule_of(graph_), {}, cut.team});
    Plan plan = plan_for_devices(graph_, recipe_, platform, devices, options);
    // Loading must not be part of a task that computes. A GPU's never is.
    if (groups_of(plan).front()->kind == DeviceKind::cpu) plan.gather_phases = false;
    return plan;
  }

  static std::size_t segment_of(const Task& task, const Blueprint& blueprint) {
    const Action& first = task.actions.front();
    const bool of_bucket = first.phase == Phase::reduce || first.phase == Phase::measure ||
                           first.phase == Phase::update || first.phase == Phase::pack;
    return of_bucket ? blueprint.buckets[first.bucket.value].segment.value : first.segment.value;
  }

  void add_work(ShareCost& cost, const Task& task, const sim::RankKind& kind,
                const DeviceGroup& group) const {
    const Phase first = task.actions.front().phase;
    // The cores of a node with nothing else load what they compute on.
    const bool loads =
        task.on_host && platform_.nodes.front().groups.size() == 1 && group.kind == DeviceKind::cpu;
    if (task.on_host && !loads) return;
    const bool computes = !loads && task.flops > 0;
    const bool meets =
        first == Phase::reduce || first == Phase::combine || first == Phase::combine_gradient;
    const bool steps = first == Phase::measure || first == Phase::update || first == Phase::pack;
    if (!loads && !computes && !meets && !steps) return;
    const std::size_t segment = loads ? 0 : segment_of(task, *kind.blueprint);
    const std::optional<ChunkId> chunk = computed_chunk(task);
    const bool in_chain = computes && chunk && chunk->value == 0 && !only_weight_gradients(task);
    const std::vector<std::pair<int, double>> busy = busy_workers(group);
    for (const auto& [work, end] :
         {std::pair(&cost.low, &Estimate::low), std::pair(&cost.typical, &Estimate::seconds)}) {
      // Where workers hinder each other, fewer of them at a time may need less.
      double seconds = std::numeric_limits<double>::infinity(), least = seconds;
      for (const auto& [workers, speed] : busy) {
        const double took = kind.costs->of(task, workers).*end;
        seconds = std::min(seconds, took / speed);
        least = std::min(least, took);
      }
      const double core_s = least * group.team;
      if (in_chain) work->chain_s += least / busy.front().second;
      double& all_s = loads   ? work->load_s
                      : meets ? work->meeting_s
                      : steps ? work->update_s[segment]
                              : work->seconds[segment];
      double& all_core_s = loads   ? work->load_core_s
                           : meets ? work->meeting_core_s
                           : steps ? work->update_core_s[segment]
                                   : work->core_s[segment];
      all_s += seconds;
      all_core_s += core_s;
    }
  }

  const Graph& graph_;
  const Recipe& recipe_;
  const std::string group_;
  const sim::Profiles& profiles_;
  Platform platform_;  // of this node
  NodeOptions options_;
};

// Sizes of chunks whose costs are looked up: powers of `ratio`, and the batch.
std::vector<std::int64_t> sizes_up_to(std::int64_t batch, std::int64_t ratio) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < batch; size *= ratio) sizes.push_back(size);
  sizes.push_back(batch);
  return sizes;
}

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

// The least that chunks of any size, any team and any number of workers need.
class LeastWork {
 public:
  LeastWork(const DeviceMeasure& measure, const PlatformGroup& group, std::int64_t batch)
      : batch_(batch), known_by_task_(group.kind == DeviceKind::cpu && !group.costs.estimate()) {
    const bool cpu = group.kind == DeviceKind::cpu, several = cpu && group.count > 1;
    const auto consider = [&](std::int64_t size, std::int64_t chunks, int team, int workers) {
      const Cut by_blocks{.groups = cpu ? chunks * size : size,
                          .team = team,
                          .chunks = cpu ? chunks : 0,
                          .workers = workers};
      Cut in_one = by_blocks;
      in_one.segments = "step";
      ways_.push_back({size, measure.of(by_blocks), measure.of(in_one)});
    };
    // Chunks of a batch that is cut meet at batch norms; the whole batch does not.
    const auto consider_both = [&](std::int64_t size, int team, int workers) {
      if (cpu) consider(size, 2, team, workers);
      if (!cpu || size == batch) consider(size, 1, team, workers);
    };
    // Powers of two are what is measured; an estimate hardly depends on the size.
    for (const std::int64_t size : sizes_up_to(batch, known_by_task_ ? 2 : 4)) {
      consider_both(size, several ? 1 : 0, 0);
      if (several) consider_both(size, group.count, 0);
    }
    if (several) consider(batch, 1, 1, 1);
  }

  // By this end of the costs' intervals. `shares`: by segment, the model's cost of a share among
  // several devices, which the bound may not be above; `speed`: of a power state, whose cores draw
  // `watts` beyond idle; `accumulate`: batches before each step of the parameters.
  optimize::LeastCosts costs(const Work ShareCost::*end, const std::vector<CostLine>& shares,
                             double speed, double watts, double accumulate) const {
    optimize::LeastCosts least;
    const auto all = static_cast<double>(batch_);
    for (std::size_t g = 0; g < shares.size(); ++g) {
      const auto of = [&](auto amount) { return least_of(&Way::by_blocks, end, amount); };
      const double seconds = of([&](const Work& work, double n) { return work.seconds[g] / n; });
      const double core_s = of([&](const Work& work, double n) { return work.core_s[g] / n; });
      least.seconds.push_back({0, std::min(seconds, shares[g].at(all) / all)});
      least.joules.push_back({0, core_s});
      least.update_s.push_back(of([&](const Work& work, double) { return work.update_s[g]; }));
      least.update_j.push_back(of([&](const Work& work, double) { return work.update_core_s[g]; }));
    }
    // A step in one segment may need less than the sum of its blocks.
    const auto of = [&](auto amount) { return least_of(&Way::in_one, end, amount); };
    lower_to(least.seconds, of([](const Work& work, double n) { return sum(work.seconds) / n; }));
    lower_to(least.joules, of([](const Work& work, double n) { return sum(work.core_s) / n; }));
    lower_to(least.update_s, of([](const Work& work, double) { return sum(work.update_s); }));
    lower_to(least.update_j, of([](const Work& work, double) { return sum(work.update_core_s); }));
    for (std::size_t g = 0; g < shares.size(); ++g) {
      least.seconds[g].per_sample /= speed;
      least.joules[g].per_sample *= watts / speed;
      least.update_s[g] /= accumulate;  // memory keeps its speed
      least.update_j[g] *= watts / accumulate;
    }
    const auto load = [&](double Work::*amount) {
      return of([&](const Work& work, double n) { return work.*amount / n; });
    };
    if (!known_by_task_) {
      least.update_s.clear();
      least.update_j.clear();
      return least;
    }
    const double load_s = load(&Work::load_s), load_j = watts * load(&Work::load_core_s);
    least.seconds.front().per_sample += load_s;
    least.joules.front().per_sample += load_j;
    // Without a step of the parameters between them, chunks of two batches may be computed at a
    // time.
    if (accumulate == 1) add_chunks(least, end, speed, watts, load_s, load_j);
    return least;
  }

 private:
  // A size of chunks, a team and a number of workers: in a segment for each block, and in one.
  struct Way {
    std::int64_t size;
    ShareCost by_blocks, in_one;
  };

  template <class Amount>
  double least_of(ShareCost Way::*cost, const Work ShareCost::*end, const Amount& amount) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Way& way : ways_)
      least = std::min(least, amount(way.*cost.*end, (way.*cost).samples));
    return least;
  }
  static void lower_to(std::vector<CostLine>& least, double per_sample) {
    const double before = optimize::total(least).per_sample;
    for (CostLine& each : least)
      if (per_sample < before) each.per_sample *= per_sample / before;
  }
  static void lower_to(std::vector<double>& least, double all) {
    const double before = sum(least);
    for (double& each : least)
      if (all < before) each *= all / before;
  }

  void add_chunks(optimize::LeastCosts& least, const Work ShareCost::*end, double speed,
                  double watts, double load_s, double load_j) const {
    if (batch_ > most_chunk_sizes) return;
    std::map<int, std::map<std::int64_t, optimize::ChunkCost>> by_team;  // and size
    double meeting_s = std::numeric_limits<double>::infinity(), meeting_core_s = meeting_s;
    for (const Way& way : ways_)
      for (const ShareCost* cost : {&way.by_blocks, &way.in_one}) {
        const Work& work = cost->*end;
        const double chunks = cost->samples / static_cast<double>(way.size);
        const auto size = static_cast<double>(way.size);
        const optimize::ChunkCost chunk{work.chain_s / speed,
                                        sum(work.seconds) / chunks / speed + size * load_s,
                                        sum(work.core_s) / chunks / speed * watts + size * load_j};
        const auto [found, fresh] = by_team[cost->team].try_emplace(way.size, chunk);
        optimize::ChunkCost& known = found->second;
        known = {std::min(known.chain_s, chunk.chain_s), std::min(known.seconds, chunk.seconds),
                 std::min(known.joules, chunk.joules)};
        if (cost->lanes < 2) continue;
        meeting_s = std::min(meeting_s, work.meeting_s);
        meeting_core_s = std::min(meeting_core_s, work.meeting_core_s);
      }
    if (std::isfinite(meeting_s)) {
      least.meeting_s = meeting_s;
      least.meeting_j = meeting_core_s * watts;
    }
    for (const auto& [team, sizes] : by_team) {
      // Costs between two sizes lie on a straight line, or above it.
      std::vector<optimize::ChunkCost>& chunks = least.chunks.emplace_back();
      for (auto next = sizes.begin(); next != sizes.end(); ++next) {
        const std::int64_t first = std::ssize(chunks) + 1;
        const auto before = next == sizes.begin() ? next : std::prev(next);
        for (std::int64_t size = first; size <= next->first; ++size) {
          const double part = next == before ? 1
                                             : static_cast<double>(size - before->first) /
                                                   static_cast<double>(next->first - before->first);
          const auto on_line = [&](double optimize::ChunkCost::*amount) {
            const double from = before->second.*amount;
            return from + part * (next->second.*amount - from);
          };
          chunks.push_back({on_line(&optimize::ChunkCost::chain_s),
                            on_line(&optimize::ChunkCost::seconds),
                            on_line(&optimize::ChunkCost::joules)});
        }
      }
    }
  }

  std::int64_t batch_;
  // What each task of a plan costs is the sum of what it does. An estimate in FLOP/s speaks of
  // tasks that compute, whatever they do besides; and tasks of a GPU are measured as wholes.
  bool known_by_task_;
  std::vector<Way> ways_;
};

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
