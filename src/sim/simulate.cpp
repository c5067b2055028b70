#include "sim/simulate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "sim/aside.h"
#include "sim/fleet_run.h"
#include "tasks/task_label.h"
#include "trace/energy.h"

namespace regatta::sim {
namespace {

trace::Time nanoseconds(double seconds) {
  return static_cast<trace::Time>(std::llround(seconds * 1e9));
}

// Joules of each step. Groups of one name together: nobody reads a thousand curves.
std::vector<trace::Counter> joules_of(const FleetMap& map, const ReplicaOutcome& outcome) {
  std::vector<trace::Counter> counters;
  const std::size_t hosts = map.hosts().size();
  for (std::size_t s = 0; s < outcome.step_ends.size(); ++s) {
    std::map<std::string, double> sums;
    for (std::size_t h = 0; h < hosts; ++h) {
      const double before = s > 0 ? outcome.joules[(s - 1) * hosts + h] : 0;
      sums[map.host_names()[h].group] += outcome.joules[s * hosts + h] - before;
    }
    const double seconds = outcome.step_ends[s] - (s > 0 ? outcome.step_ends[s - 1] : 0);
    if (map.unused_watts() > 0) sums["unused nodes"] += map.unused_watts() * seconds;
    for (const auto& [group, joules] : sums)
      counters.push_back({"energy " + group, "J", "estimate", static_cast<std::int64_t>(s) + 1,
                          nanoseconds(outcome.step_ends[s]), joules});
  }
  return counters;
}

class RecordMaker {
 public:
  RecordMaker(const Fleet& fleet, const FleetMap& map, const SimulationOptions& options,
              const ReplicaOutcome& outcome)
      : fleet_(fleet), map_(map), options_(options), outcome_(outcome) {}

  trace::Record make() {
    add_kinds();
    add_workers();
    add_tasks();
    for (std::size_t s = 0; s < outcome_.step_ends.size(); ++s)
      record_.marks.push_back(
          {"step", static_cast<std::int64_t>(s) + 1, nanoseconds(outcome_.step_ends[s])});
    record_.counters = joules_of(map_, outcome_);
    add_transfers();
    add_exchanges();
    record_.metadata["simulated"] = fleet_.platform.name;
    return std::move(record_);
  }

 private:
  void add_kinds() {
    for (const NodeWork& work : map_.works()) {
      first_kind_.push_back(static_cast<std::int32_t>(record_.kinds.size()));
      for (std::size_t t = 0; t < work.tasks(); ++t) {
        const Task& task = work.list().tasks[t];
        const TaskLabel label = label_of(task);
        record_.kinds.push_back(
            {"train", label.phases, task.on_host ? "host" : work.pools()[task.group.value].group,
             label.segment, label.part, label.chunk, label.bucket, task.priority, task.flops});
      }
    }
  }

  void add_workers() {
    std::map<std::pair<int, DeviceKind>, int> counts;  // of a node
    for (const Rank& rank : fleet_.ranks) {
      first_worker_.push_back(static_cast<std::int32_t>(record_.workers.size()));
      const std::vector<Pool>& pools = map_.work(rank).pools();
      for (std::size_t p = 0; p < pools.size(); ++p) {
        const std::string kind(device_kind_name(pools[p].kind));
        const int node = rank.node_of(p);
        for (int i = 0; i < pools[p].workers; ++i)
          record_.workers.push_back({kind + " " + std::to_string(counts[{node, pools[p].kind}]++),
                                     pools[p].group, map_.wiring().node_name(node), kind});
      }
    }
  }

  // In the order of steps, then ranks, then the list.
  void add_tasks() {
    std::vector<std::size_t> first(fleet_.ranks.size());  // in the outcome
    std::size_t total = 0;
    for (std::size_t r = 0; r < fleet_.ranks.size(); ++r) {
      first[r] = total;
      total += map_.work(fleet_.ranks[r]).tasks() * static_cast<std::size_t>(options_.steps);
    }
    const std::int64_t per_step = static_cast<std::int64_t>(total) / options_.steps;
    std::int64_t before = 0;  // tasks of earlier ranks in a step
    std::vector<std::int64_t> offset;
    for (const Rank& rank : fleet_.ranks) {
      offset.push_back(before);
      before += static_cast<std::int64_t>(map_.work(rank).tasks());
    }
    for (std::int64_t step = 0; step < options_.steps; ++step)
      for (std::size_t r = 0; r < fleet_.ranks.size(); ++r)
        add_step(r, step, first[r], per_step, offset[r]);
  }

  void add_step(std::size_t r, std::int64_t step, std::size_t first, std::int64_t per_step,
                std::int64_t offset) {
    const Rank& rank = fleet_.ranks[r];
    const NodeWork& work = map_.work(rank);
    const auto id_of = [&](std::int64_t s, std::size_t t) {
      return s * per_step + offset + static_cast<std::int64_t>(t);
    };
    std::vector<std::vector<std::int64_t>> on(work.tasks());
    for (std::size_t back = 0; back < work.furthest() && static_cast<std::int64_t>(back) <= step;
         ++back)
      for (std::size_t t = 0; t < work.tasks(); ++t)
        for (const std::uint32_t next : work.successors(step, back, t))
          on[next].push_back(id_of(step - static_cast<std::int64_t>(back), t));
    for (std::size_t t = 0; t < work.tasks(); ++t) {
      const TaskEvents& each =
          outcome_.events[first + static_cast<std::size_t>(step) * work.tasks() + t];
      trace::Task task;
      task.id = id_of(step, t);
      task.kind = first_kind_[static_cast<std::size_t>(rank.kind)] + static_cast<std::int32_t>(t);
      task.worker = first_worker_[r] + each.worker;
      task.step = step + 1;
      task.submit = nanoseconds(each.submit);
      task.start = nanoseconds(each.start);
      task.end = std::max(task.start, nanoseconds(each.end));
      task.ready = std::min(nanoseconds(each.ready), task.start);
      // Its data were on their way until shortly before it started.
      if (each.fetched > each.ready) task.acquire = task.start - task.ready;
      const int busy = work.pools()[static_cast<std::size_t>(work.pool_of(t))].workers;
      task.predicted = nanoseconds(work.seconds(t, busy, 0));
      record_.tasks.push_back(task);
      std::ranges::sort(on[t]);
      for (const std::int64_t before : on[t]) record_.dependencies.push_back({task.id, before});
    }
  }

  // Wires that carried something, in the order of the wiring.
  void add_transfers() {
    int last = -1;
    for (const WireUse& use : outcome_.traffic) {
      if (use.wire != last) {
        const Wire& wire = map_.wiring().wires()[static_cast<std::size_t>(use.wire)];
        record_.links.push_back({wire.from, wire.to, 0, 0});
        last = use.wire;
      }
      const auto bytes = static_cast<std::int64_t>(std::llround(use.bytes));
      record_.links.back().bytes += bytes;
      record_.links.back().transfers += use.messages;
      record_.transfers.push_back({static_cast<std::int32_t>(record_.links.size()) - 1,
                                   nanoseconds(use.start), nanoseconds(use.end), bytes});
    }
  }

  // The kind of task that a real run records for this exchange; simulated lists have no such task.
  std::int32_t exchange_kind(ExchangeId id) {
    const auto [found, fresh] =
        exchange_kinds_.try_emplace(id, static_cast<std::int32_t>(record_.kinds.size()));
    if (!fresh) return found->second;
    const NodeWork& work = map_.works().front();
    Task task;
    if (work.of_bucket(id)) {
      const Bucket& bucket = work.blueprint().buckets[id.value];
      task.actions.push_back(
          {.phase = Phase::exchange, .segment = bucket.segment, .bucket = BucketId{id.value}});
    } else {
      const std::vector<Action>& actions = work.list().tasks[work.awaits(id)].actions;
      Action action = *std::ranges::find_if(actions, [](const Action& each) {
        return each.phase == Phase::combine || each.phase == Phase::combine_gradient;
      });
      action.phase =
          action.phase == Phase::combine ? Phase::exchange_sums : Phase::exchange_gradient_sums;
      task.actions.push_back(action);
    }
    const TaskLabel label = label_of(task);
    record_.kinds.push_back({.job = "train",
                             .phases = label.phases,
                             .group = "network",
                             .segment = label.segment,
                             .part = label.part,
                             .chunk = -1,
                             .bucket = label.bucket});
    return found->second;
  }

  // Finds a lane of this rank that is free from `start` on, and occupies it until `end`.
  std::int32_t exchange_lane(std::size_t rank, trace::Time start, trace::Time end) {
    for (auto& [lane, until] : exchange_lanes_[rank])
      if (until <= start) {
        until = end;
        return lane;
      }
    const auto lane = static_cast<std::int32_t>(record_.workers.size());
    record_.workers.push_back({"exchange " + std::to_string(exchange_lanes_[rank].size()),
                               "network", map_.wiring().node_name(fleet_.ranks[rank].node),
                               trace::network_kind});
    exchange_lanes_[rank].emplace_back(lane, end);
    return lane;
  }

  void add_exchanges() {
    exchange_lanes_.resize(fleet_.ranks.size());
    std::vector<ExchangeTimes> all = outcome_.exchanges;
    std::ranges::stable_sort(all, {}, &ExchangeTimes::start);
    std::int64_t id = record_.tasks.empty() ? 0 : record_.tasks.back().id + 1;
    for (const ExchangeTimes& each : all) {
      trace::Task task;
      task.id = id++;
      task.kind = exchange_kind(each.id);
      task.step = each.step + 1;
      task.submit = task.ready = task.start = nanoseconds(each.start);
      task.end = std::max(task.start, nanoseconds(each.end));
      task.worker = exchange_lane(each.rank, task.start, task.end);
      record_.tasks.push_back(task);
    }
  }

  const Fleet& fleet_;
  const FleetMap& map_;
  const SimulationOptions& options_;
  const ReplicaOutcome& outcome_;
  std::map<ExchangeId, std::int32_t> exchange_kinds_;
  // By rank: the number of each lane, and until when it is occupied.
  std::vector<std::vector<std::pair<std::int32_t, trace::Time>>> exchange_lanes_;
  std::vector<std::int32_t> first_kind_, first_worker_;
  trace::Record record_;
};

// The first steps fill the pipeline.
std::size_t warm_up(std::int64_t steps) {
  return steps == 1 ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(1, steps / 3));
}

// Joules of a host in a step, of those that count.
double joules_a_step(const FleetMap& map, const ReplicaOutcome& outcome, std::size_t host) {
  const std::size_t steps = outcome.step_ends.size(), hosts = map.hosts().size();
  const std::size_t skipped = warm_up(static_cast<std::int64_t>(steps));
  const double before = skipped > 0 ? outcome.joules[(skipped - 1) * hosts + host] : 0;
  return (outcome.joules[(steps - 1) * hosts + host] - before) /
         static_cast<double>(steps - skipped);
}

std::vector<GroupEnergy> energy_by_group(const FleetMap& map, const ReplicaOutcome& outcome,
                                         double step_s) {
  std::map<std::pair<std::string, std::string>, GroupEnergy> rows;
  std::set<int> used;
  for (std::size_t h = 0; h < map.hosts().size(); ++h) {
    const FleetMap::HostName& name = map.host_names()[h];
    const World::Host& host = map.hosts()[h];
    used.insert(name.node);
    GroupEnergy& row = rows[{map.wiring().node(name.node).name, name.group}];
    row.node = map.wiring().node(name.node).name;
    row.group = name.group;
    row.devices += host.cores;
    const double idle = host.idle_watts * host.cores * step_s;
    row.idle_j += idle;
    row.tasks_j += joules_a_step(map, outcome, h) - idle;
  }
  std::vector<GroupEnergy> all;
  for (auto& [key, row] : rows) all.push_back(std::move(row));
  const int unused = map.wiring().nodes() - static_cast<int>(used.size());
  if (unused > 0) all.push_back({"unused nodes", "", unused, map.unused_watts() * step_s, 0});
  return all;
}

void add_use(Simulated& made, const Fleet& fleet, const FleetMap& map,
             const ReplicaOutcome& outcome, std::int64_t steps) {
  const std::size_t first_step = warm_up(steps);
  const double counted = static_cast<double>(steps) - static_cast<double>(first_step);
  std::size_t next = 0;
  for (std::size_t r = 0; r < fleet.ranks.size(); ++r) {
    const NodeWork& work = map.work(fleet.ranks[r]);
    std::vector<double> busy(work.pools().size(), 0);
    for (std::int64_t step = 0; step < steps; ++step)
      for (std::size_t t = 0; t < work.tasks(); ++t, ++next)
        if (static_cast<std::size_t>(step) >= first_step)
          busy[static_cast<std::size_t>(work.pool_of(t))] +=
              outcome.events[next].end - outcome.events[next].start;
    for (std::size_t p = 0; p < work.pools().size(); ++p)
      made.groups.push_back({static_cast<int>(r), p,
                             map.wiring().node_name(fleet.ranks[r].node_of(p)),
                             work.pools()[p].group, work.pools()[p].workers, busy[p] / counted});
    for (std::size_t p = 0; p < fleet.ranks[r].devices.size(); ++p)
      made.groups[made.groups.size() - work.pools().size() + p].energy_j =
          joules_a_step(map, outcome,
                        static_cast<std::size_t>(
                            map.host_of(fleet.ranks[r].node_of(p), fleet.ranks[r].devices[p])));
  }
}

}  // namespace

Simulated simulate(const Fleet& fleet, const SimulationOptions& options) {
  if (fleet.ranks.empty() || options.steps < 1 || options.replicas < 1)
    throw Error("internal: nothing to simulate");
  const FleetMap map(fleet);
  const std::vector<ReplicaOutcome> outcomes =
      replicas_of(run_aside([&] { return run_fleet(fleet, map, options); }), options.replicas);
  Simulated made;
  const std::size_t skipped = warm_up(options.steps);
  for (const ReplicaOutcome& outcome : outcomes) {
    const double counted = static_cast<double>(outcome.step_ends.size() - skipped);
    const double begin = skipped > 0 ? outcome.step_ends[skipped - 1] : 0;
    made.step_s.push_back((outcome.step_ends.back() - begin) / counted);
    const auto energy = trace::energy_of(joules_of(map, outcome),
                                         static_cast<std::int64_t>(skipped) + 1, options.steps);
    made.energy_j.push_back(energy ? energy->a_step() : 0);
  }
  add_use(made, fleet, map, outcomes.front(), options.steps);
  made.energy = energy_by_group(map, outcomes.front(), made.step_s.front());
  made.tasks = static_cast<std::int64_t>(outcomes.front().events.size());
  made.exchanged_bytes = outcomes.front().bytes.front() / static_cast<double>(options.steps);
  made.record = RecordMaker(fleet, map, options, outcomes.front()).make();
  made.record.metadata[trace::first_step_key] = std::to_string(skipped + 1);
  made.record.metadata[trace::last_step_key] = std::to_string(options.steps);
  return made;
}

}  // namespace regatta::sim
