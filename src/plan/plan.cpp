#include "plan/plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "graph/program.h"

namespace regatta {
namespace {

constexpr std::array<std::string_view, 3> reduction_names{"slots", "redux", "loop"};
constexpr std::array<std::string_view, 2> backward_names{"whole", "split"};
constexpr std::array<std::string_view, 3> perf_model_names{"fitted", "history", "regression"};

constexpr std::array<std::string_view, 3> placement_names{"dynamic", "hybrid", "static"};
constexpr std::array<std::string_view, 8> node_update_names{
    "ring", "tree", "hierarchical", "server:cpu", "server:gpu", "replicated", "chain", "mpi"};

constexpr int most_team = 1024;  // more is a mistake, and would be that many threads

// Workers that an order speaks of, on the first so many nodes: each has loaders of its own.
std::size_t ordered_workers(const Plan& plan, std::size_t nodes) {
  std::size_t workers = nodes * static_cast<std::size_t>(plan.loaders);
  for (std::size_t n = 0; n < nodes; ++n)
    for (const DeviceGroup& group : plan.nodes[n].groups)
      workers += group.kind == DeviceKind::cpu ? static_cast<std::size_t>(group.workers) : 1;
  return workers;
}

// Chunks, in the order of the batch, that end inside one of batch norm's groups of samples.
std::vector<std::string> broken_groups(const Plan& plan, std::int64_t granule) {
  std::vector<std::string> found;
  const auto groups = groups_of(plan);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool ends_batch = !plan.stages.empty() || g + 1 == groups.size();
    for (std::size_t i = 0; i < groups[g]->chunks.size(); ++i) {
      const bool last = ends_batch && i + 1 == groups[g]->chunks.size();
      const std::int64_t samples = groups[g]->chunks[i];
      if (last || samples % granule == 0) continue;
      found.push_back("a chunk of " + std::to_string(samples) + " samples of group '" +
                      groups[g]->name + "' breaks up batch norm's groups: all chunks but the " +
                      "batch's last are multiples of " + std::to_string(granule));
      break;  // one of a group's chunks tells enough
    }
  }
  return found;
}

}  // namespace

std::string_view reduction_name(Reduction reduction) {
  return reduction_names[static_cast<std::size_t>(reduction)];
}

Reduction reduction_named(std::string_view name) {
  for (std::size_t i = 0; i < reduction_names.size(); ++i)
    if (reduction_names[i] == name) return static_cast<Reduction>(i);
  throw InputError("reduction '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, {"slots", "redux", "loop"}) + ": use slots, redux or loop");
}

std::string_view backward_name(Backward backward) {
  return backward_names[static_cast<std::size_t>(backward)];
}

Backward backward_named(std::string_view name) {
  for (std::size_t i = 0; i < backward_names.size(); ++i)
    if (backward_names[i] == name) return static_cast<Backward>(i);
  throw InputError("backward '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, {"whole", "split"}) + ": use whole or split");
}

std::string_view perf_model_name(PerfModel model) {
  return perf_model_names[static_cast<std::size_t>(model)];
}

PerfModel perf_model_named(std::string_view name) {
  for (std::size_t i = 0; i < perf_model_names.size(); ++i)
    if (perf_model_names[i] == name) return static_cast<PerfModel>(i);
  throw InputError("perf model '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, {"fitted", "history", "regression"}) +
                   ": use fitted, history or regression");
}

std::string_view placement_name(Placement placement) {
  return placement_names[static_cast<std::size_t>(placement)];
}

Placement placement_named(std::string_view name) {
  for (std::size_t i = 0; i < placement_names.size(); ++i)
    if (placement_names[i] == name) return static_cast<Placement>(i);
  throw InputError("placement '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, {"dynamic", "hybrid", "static"}) +
                   ": use dynamic, hybrid or static");
}

std::string_view node_update_name(NodeUpdate update) {
  return node_update_names[static_cast<std::size_t>(update)];
}

NodeUpdate node_update_named(std::string_view name) {
  for (std::size_t i = 0; i < node_update_names.size(); ++i)
    if (node_update_names[i] == name) return static_cast<NodeUpdate>(i);
  throw InputError(
      "update '" + std::string(name) + "' is unknown" +
      did_you_mean(name, {node_update_names.begin(), node_update_names.end()}) +
      ": use ring, tree, hierarchical, server:cpu, server:gpu, replicated, chain or mpi");
}

std::vector<const DeviceGroup*> groups_of(const Plan& plan) {
  std::vector<const DeviceGroup*> groups;
  for (const PlanNode& node : plan.nodes)
    for (const DeviceGroup& group : node.groups) groups.push_back(&group);
  return groups;
}

std::vector<PlanWorker> workers_of(const Plan& plan) {
  std::vector<PlanWorker> workers;
  int cpus = 0, gpus = 0;
  GroupId id;
  for (const DeviceGroup* group : groups_of(plan)) {
    const bool cpu = group->kind == DeviceKind::cpu;
    for (int i = 0; i < (cpu ? group->workers : 1); ++i)
      workers.push_back({group->kind, id, cpu ? cpus++ : gpus++});
    ++id.value;
  }
  for (int i = 0; i < plan.loaders; ++i) workers.push_back({DeviceKind::cpu, std::nullopt, cpus++});
  return workers;
}

int threads_of(const Plan& plan) {
  int threads = plan.loaders;
  for (const DeviceGroup* group : groups_of(plan))
    threads += group->kind == DeviceKind::cpu ? group->workers * group->team : 1;
  return threads;
}

int cpus_of(const Plan& plan) {
  int cpus = plan.loaders;
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cpu) cpus += group->workers * group->team;
  return cpus;
}

bool takes_all_cpus(const Plan& plan) { return plan.cpus > 0 && threads_of(plan) >= plan.cpus; }

std::vector<double> slowness_of(const Plan& plan) {
  std::vector<double> slowness;
  for (const DeviceGroup* group : groups_of(plan)) {
    const int workers = group->kind == DeviceKind::cpu ? group->workers : 1;
    for (int i = 0; i < workers; ++i)
      slowness.push_back(group->slow.empty() ? 1 : group->slow[static_cast<std::size_t>(i)]);
  }
  slowness.resize(slowness.size() + static_cast<std::size_t>(plan.loaders), 1);
  return slowness;
}

std::vector<WorkerPower> powers_of(const Plan& plan) {
  std::vector<WorkerPower> powers;
  for (const double slow : slowness_of(plan)) powers.push_back({.slow = slow});
  std::size_t first = 0;
  for (const DeviceGroup* group : groups_of(plan)) {
    for (std::size_t w = 0; w < group->powers.size(); ++w) {
      WorkerPower& power = powers[first + w];
      power = {std::max(power.slow, group->powers[w].slow), group->powers[w].watts};
    }
    first += group->kind == DeviceKind::cpu ? static_cast<std::size_t>(group->workers) : 1;
  }
  return powers;
}

double full_workers(const DeviceGroup& group) {
  double full = group.powers.empty() ? group.workers : 0;
  for (const WorkerPower& power : group.powers) full += 1 / power.slow;
  return full;
}

std::vector<double> contention_of(const Plan& plan) {
  const std::vector<double> slowness = slowness_of(plan);
  const std::vector<PlanWorker> workers = workers_of(plan);
  std::vector<double> contention(workers.size(), 1);
  if (std::ranges::all_of(slowness, [](double each) { return each == 1; })) return contention;
  for (std::size_t w = 0; w < workers.size(); ++w) {
    double others = 0, count = 0;
    for (std::size_t other = 0; other < workers.size(); ++other) {
      if (other == w || workers[other].group != workers[w].group) continue;
      others += 1 / slowness[other];
      ++count;
    }
    if (count > 0) contention[w] = others / count;
  }
  return contention;
}

std::int64_t share_of(const DeviceGroup& group) {
  return std::accumulate(group.chunks.begin(), group.chunks.end(), std::int64_t{0});
}

std::int64_t share_of(const PlanNode& node) {
  std::int64_t samples = 0;
  for (const DeviceGroup& group : node.groups) samples += share_of(group);
  return samples;
}

Plan plan_of_node(const Plan& plan, std::size_t node) {
  Plan part = plan;
  part.nodes = {plan.nodes[node]};
  if (plan.order.empty()) return part;
  const auto end_of = [&](std::size_t nodes) {
    return plan.order.begin() + std::min(static_cast<std::ptrdiff_t>(ordered_workers(plan, nodes)),
                                         std::ssize(plan.order));
  };
  part.order.assign(end_of(node), end_of(node + 1));
  return part;
}

GroupId owner_of(const Plan& plan) {
  GroupId owner;
  std::int64_t largest = 0;
  const auto groups = groups_of(plan);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const std::int64_t share = share_of(*groups[g]);
    if (share <= largest) continue;
    largest = share;
    owner = GroupId{g};
  }
  return owner;
}

int loading_workers(const Plan& plan) {
  int workers = plan.loaders;
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cpu) workers += group->workers;
  return workers;
}

bool waits_at_gates(const Plan& plan) {
  return plan.scheduler == own_scheduler && plan.reduction != Reduction::redux &&
         plan.perf_model == PerfModel::fitted;
}

std::vector<Chunk> chunks_of(const Plan& plan) {
  std::vector<Chunk> chunks;
  GroupId group_id;
  const GroupId owner = owner_of(plan);
  const bool slots = plan.reduction == Reduction::slots;
  const auto groups = groups_of(plan);
  int next_slot = groups.empty() ? 0 : groups[owner.value]->lanes;
  for (const DeviceGroup* group : groups) {
    const int first_slot = group_id == owner ? 0 : next_slot;
    const auto first_chunk = static_cast<std::uint32_t>(chunks.size());
    for (std::size_t i = 0; i < group->chunks.size(); ++i) {
      const int lane = static_cast<int>(i) % group->lanes;
      chunks.push_back({ChunkId{static_cast<std::uint32_t>(chunks.size())}, group_id,
                        group->chunks[i], slots ? first_slot + lane : 0,
                        ChunkId{first_chunk + static_cast<std::uint32_t>(lane)}});
    }
    if (group_id != owner) next_slot += group->lanes;
    ++group_id.value;
  }
  return chunks;
}

int gradient_slots(const Plan& plan) {
  if (plan.reduction != Reduction::slots) return 1;
  int slots = 0;
  for (const DeviceGroup* group : groups_of(plan)) slots += group->lanes;
  return slots;
}

std::vector<std::string> faults(const Plan& plan, const Graph& graph, std::int64_t batch) {
  std::vector<std::string> found;
  const auto check = [&](bool holds, std::string fault) {
    if (!holds) found.push_back(std::move(fault));
  };
  check(!groups_of(plan).empty(), "it names no device group");
  std::int64_t samples = 0;
  const bool loads = plan.loaders > 0;
  bool computes_on_cpu = false;
  for (const DeviceGroup* group : groups_of(plan)) {
    computes_on_cpu = computes_on_cpu || group->kind == DeviceKind::cpu;
    const bool blocked = channel_block(group->layout) > 1;
    check(blocked == (group->kind == DeviceKind::cpu),
          "layout " + std::string(layout_name(group->layout)) + " is not for group '" +
              group->name + "': CPUs use blocked8 or blocked16, GPUs nhwc or nchw");
    const std::string who = "group '" + group->name + "'";
    check(plan.backward == Backward::whole || group->kind == DeviceKind::cpu,
          "its backward is split, which GPUs such as " + who +
              " do not do: use --backward whole, or --devices cpu");
    check(group->workers >= 1, who + " has no worker");
    check(group->team >= 1 && group->team <= most_team,
          who + " has teams of " + std::to_string(group->team) + " threads; use 1 to " +
              std::to_string(most_team));
    check(group->team == 1 || group->kind == DeviceKind::cpu,
          who + " has teams of threads; only CPU workers have them");
    check(
        group->slow.empty() || (std::ssize(group->slow) == group->workers &&
                                std::ranges::all_of(group->slow, [](double f) { return f >= 1; })),
        who + " is slowed down, which takes a factor of 1 or more for each of its workers");
    check(group->powers.empty() ||
              (group->kind == DeviceKind::cpu && std::ssize(group->powers) == group->workers),
          who + " has 'powers', which takes one for each of its CPU workers");
    check(!group->chunks.empty(), who + " has no chunk");
    check(std::ranges::all_of(group->chunks, [](std::int64_t n) { return n > 0; }),
          who + " has a chunk without samples");
    check(group->lanes >= 1 && group->lanes <= static_cast<int>(group->chunks.size()),
          who + " has " + std::to_string(group->lanes) + " lanes for " +
              std::to_string(group->chunks.size()) + " chunks");
    samples += share_of(*group);
  }
  if (plan.stages.empty())
    check(samples == batch, "its chunks hold " + std::to_string(samples) + " samples, the batch " +
                                std::to_string(batch));
  else  // every sample passes through every stage
    for (const DeviceGroup* group : groups_of(plan)) {
      check(share_of(*group) == batch, "a stage takes the whole batch of " + std::to_string(batch) +
                                           ", but group '" + group->name + "' " +
                                           std::to_string(share_of(*group)) + " samples");
      check(group->chunks == groups_of(plan).front()->chunks,
            "group '" + group->name + "' cuts the batch in another way than the first: a chunk " +
                "goes through all stages");
    }
  for (const std::string& fault : broken_groups(plan, granule_of(graph))) found.push_back(fault);
  check(!plan.segments.empty(), "it has no segment");
  std::uint32_t next = 0;
  bool recomputes = false;
  for (const Segment& segment : plan.segments) {
    const auto name = [&](NodeId id) {
      return id.value < graph.nodes().size() ? graph.node(id).name : "#" + std::to_string(id.value);
    };
    check(segment.first.value == next && segment.last >= segment.first,
          "segment " + name(segment.first) + ".." + name(segment.last) +
              " does not follow the one before it");
    next = segment.last.value + 1;
    recomputes |= segment.recomputed;
  }
  check(plan.segments.empty() || !plan.segments.back().recomputed,
        "its last segment is computed again, but its backward follows its forward at once");
  check(!recomputes || plan.backward == Backward::whole,
        "segments are computed again, and weight gradients of a split backward would need what is "
        "not kept: use --backward whole");
  check(!recomputes || plan.stages.empty(), "the stages of a pipeline keep all segments");
  check(next == graph.nodes().size(), "its segments do not cover the model's " +
                                          std::to_string(graph.nodes().size()) + " operators");
  check(loads || computes_on_cpu, "nobody loads: without a CPU group it needs loaders");
  check(!plan.gather_loads || computes_on_cpu,
        "it gathers loads with the work of CPUs, but has no CPU group");
  check(plan.bucket_bytes > 0, "bucket_bytes must be positive");
  check(plan.steps_in_flight >= 1 && plan.steps_in_flight <= 64,
        "steps_in_flight must be between 1 and 64");
  for (const Stage& stage : plan.stages) {
    const std::string who = "stage '" + stage.node + "/" + stage.group + "'";
    check(stage.first <= stage.last && stage.last < plan.segments.size(),
          who + " owns segments " + std::to_string(stage.first) + " to " +
              std::to_string(stage.last) + " of " + std::to_string(plan.segments.size()));
    check(std::ranges::any_of(plan.nodes,
                              [&](const PlanNode& node) {
                                return node.name == stage.node &&
                                       std::ranges::any_of(node.groups, [&](const DeviceGroup& g) {
                                         return g.name == stage.group;
                                       });
                              }),
          who + " names no group of the plan");
  }
  for (std::size_t i = 0; i + 1 < plan.stages.size(); ++i)
    check(plan.stages[i + 1].first == plan.stages[i].last + 1,
          "stage " + std::to_string(i + 1) + " does not begin after the one before it");
  if (!plan.stages.empty()) {
    check(plan.stages.front().first == 0 && plan.stages.back().last + 1 == plan.segments.size(),
          "its stages do not cover its " + std::to_string(plan.segments.size()) + " segments");
    check(plan.placement == Placement::dynamic,
          "stages have an order of their own, so its placement must be dynamic");
    for (const PlanNode& node : plan.nodes)
      for (const DeviceGroup& group : node.groups)
        check(std::ranges::any_of(plan.stages,
                                  [&](const Stage& stage) {
                                    return stage.node == node.name && stage.group == group.name;
                                  }),
              "group '" + node.name + "/" + group.name + "' has no stage");
  }
  const std::size_t workers = ordered_workers(plan, plan.nodes.size());
  if (plan.placement == Placement::fixed)
    check(plan.order.size() == workers, "placement static needs an order for each of " +
                                            std::to_string(workers) + " workers, it has " +
                                            std::to_string(plan.order.size()));
  else
    check(plan.order.empty(),
          "it has an order of tasks, but placement " + std::string(placement_name(plan.placement)));
  check(plan.pace_s == 0 ||
            (groups_of(plan).size() == 1 && !groups_of(plan).front()->powers.empty() &&
             plan.placement == Placement::dynamic && waits_at_gates(plan)),
        "a pace is for the CPU workers of one node with known 'powers', placement dynamic and "
        "Regatta's own scheduler and reductions");
  check(!(plan.deterministic && plan.reduction == Reduction::redux),
        "StarPU's reduction adds in an order of its own, so --reduction redux cannot be "
        "deterministic; use slots or loop");
  return found;
}

std::vector<std::string> hindrances(const Plan& plan) {
  std::vector<std::string> found;
  if (plan.nodes.size() > 1)
    found.push_back("it is for " + std::to_string(plan.nodes.size()) +
                    " nodes, and this is a single process: start one for each, such as by mpirun "
                    "-n " +
                    std::to_string(plan.nodes.size()) + ", or simulate it");
  for (const PlanNode& node : plan.nodes)
    if (const auto gpus = std::ranges::count(node.groups, DeviceKind::cuda, &DeviceGroup::kind);
        gpus > 1)
      found.push_back("it has " + std::to_string(gpus) + " GPUs on node '" + node.name +
                      "', and a process computes on one: start one for each, or simulate it");
  if (!plan.stages.empty()) found.emplace_back("it has stages, which can only be simulated");
  if (plan.placement != Placement::dynamic && plan.scheduler != own_scheduler)
    found.push_back("--placement " + std::string(placement_name(plan.placement)) +
                    " needs --scheduler " + own_scheduler + ", not " + plan.scheduler);
  return found;
}

void require_valid(const Plan& plan, const Graph& graph, std::int64_t batch) {
  require_no_fault(faults(plan, graph, batch));
}

void require_no_fault(const std::vector<std::string>& faults) {
  if (faults.empty()) return;
  std::string message = "the plan cannot be followed: ";
  for (std::size_t i = 0; i < faults.size(); ++i) message += (i ? "; " : "") + faults[i];
  throw InputError(message);
}

}  // namespace regatta
