#include "app/node_plan.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "plan/segments.h"
#include "tasks/placement.h"
#include "tasks/play.h"

namespace regatta::app {
namespace {

// More chunks than stages keep all of them busy; with four for each, a quarter is lost at most.
constexpr std::int64_t chunks_of_a_stage = 4;

}  // namespace

std::vector<WorkerPower> powers_on(const PlatformGroup& cores, const DeviceGroup& group) {
  std::vector<WorkerPower> powers;
  const int fast = cores.count - (cores.slow_cores ? cores.slow_cores->count : 0);
  for (int w = 0; w < group.workers; ++w) {
    WorkerPower& power = powers.emplace_back();
    for (int core = w * group.team; core < (w + 1) * group.team; ++core) {
      const bool slow = core >= fast && cores.slow_cores;
      if (slow) power.slow = cores.slow_cores->slow;  // a team waits for its slowest
      power.watts +=
          (slow ? cores.slow_cores->active_watts : cores.watts.active) - cores.watts.idle;
    }
  }
  return powers;
}

DeviceGroup group_at(const PlacedDevice& place, std::int64_t share, bool alone, const Graph& graph,
                     const Recipe& recipe, const NodeOptions& options) {
  DeviceGroup group;
  if (place.gpu()) {
    group.kind = DeviceKind::cuda;
    group.layout = options.plan.gpu_layout.value_or(Layout::nhwc);
    group.chunks = {share};
  } else {
    Recipe part = recipe;
    part.batch = share;
    PlanOptions plan = options.plan;
    plan.workers =
        options.workers > 0 ? std::min(options.workers, place.group->count) : place.group->count;
    plan.devices = {DeviceKind::cpu};
    plan.shares.reset();
    if (place.team > 0) plan.team = place.team;
    if (plan.team)
      plan.team = std::min(*plan.team, plan.workers);
    else if (place.group->slow_cores && !plan.chunks)  // many chunks: a free worker takes the next
      plan.chunks = {{std::min(chunks_of_a_worker * plan.workers, granules_of(graph, share))}};
    else if (!alone && !plan.chunks)
      plan.team = plan.workers;
    group = make_plan(graph, part, plan).nodes.front().groups.front();
    if (place.group->slow_cores) group.powers = powers_on(*place.group, group);
  }
  group.name = place.name;
  return group;
}

double guessed_share(const sim::PreparedFleet& fleet) {
  double guessed = 0, all = 0;
  std::vector<std::int64_t> ranks(fleet.fleet().kinds.size(), 0);
  for (const sim::Rank& rank : fleet.fleet().ranks) ++ranks[static_cast<std::size_t>(rank.kind)];
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const sim::RankKind& kind = fleet.fleet().kinds[k];
    const int busy = groups_of(kind.blueprint->plan).front()->workers;
    double seconds = 0;
    for (const Task& task : kind.list->tasks) seconds += kind.costs->of(task, busy).seconds;
    seconds *= static_cast<double>(ranks[k]);
    all += seconds;
    guessed += seconds * (1 - kind.costs->measured_shares(*kind.list, busy).any_size);
  }
  return all > 0 ? guessed / all : 0;
}

std::vector<double> seconds_to_gradients(const Plan& plan, const sim::PreparedFleet& fleet) {
  std::vector<std::vector<double>> by_kind;  // by kind of node and group
  for (const sim::RankKind& kind : fleet.fleet().kinds) {
    const auto groups = groups_of(kind.blueprint->plan);
    std::vector<double>& work = by_kind.emplace_back(groups.size(), 0);
    for (const Task& task : kind.list->tasks) {
      if (task.on_host || task.flops <= 0) continue;
      const DeviceGroup& group = *groups[task.group.value];
      work[task.group.value] += kind.costs->of(task, group.workers).seconds / full_workers(group);
    }
  }
  std::vector<double> seconds;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const auto& work = by_kind[static_cast<std::size_t>(fleet.fleet().ranks[n].kind)];
    seconds.insert(seconds.end(), work.begin(), work.end());
  }
  return seconds;
}

void place_over_nodes(Plan& plan, Placement placement, const sim::PreparedFleet& fleet) {
  plan.placement = placement;
  if (placement != Placement::fixed) return;
  std::map<int, std::vector<std::vector<std::uint32_t>>> orders;  // by kind of node
  for (const sim::Rank& rank : fleet.fleet().ranks) {
    const sim::RankKind& kind = fleet.fleet().kinds[static_cast<std::size_t>(rank.kind)];
    auto& order = orders[rank.kind];
    if (order.empty()) {
      std::vector<RanAt> tasks;
      for (const PlayedTask& task : play(*kind.blueprint, *kind.list, *kind.costs).tasks)
        tasks.push_back({task.worker, task.start});
      order = order_of(tasks, workers_of(kind.blueprint->plan).size());
    }
    plan.order.insert(plan.order.end(), order.begin(), order.end());
  }
}

Plan plan_over_stages(const Graph& graph, const Recipe& recipe, const Platform& platform,
                      const std::vector<Stage>& stages, const NodeOptions& options) {
  Plan plan;
  plan.recipe = recipe.fingerprint();
  plan.platform = platform.fingerprint();
  plan.reduction = options.plan.reduction;
  plan.backward = options.plan.backward.value_or(Backward::whole);
  plan.segments = segments_named(graph, options.plan.segments.value_or("block"));
  mark_recomputed(plan.segments, options.plan.recompute);
  plan.gather_phases = false;
  plan.stages = stages;
  const std::vector<std::int64_t> chunks =
      options.plan.chunks && options.plan.chunks->size() > 1
          ? *options.plan.chunks
          : equal_chunks(recipe.batch,
                         std::min(options.plan.chunks ? options.plan.chunks->front()
                                                      : chunks_of_a_stage * std::ssize(stages),
                                  granules_of(graph, recipe.batch)),
                         granule_of(graph));
  if (chunks.size() > 1) require_sizes("--chunks", chunks, recipe.batch, granule_of(graph));
  NodeOptions whole = options;  // a group's workers are one team for each chunk
  whole.plan.chunks.reset();
  const std::vector<NamedNode> all = all_nodes(platform);
  for (const Stage& stage : stages) {
    const std::string who = "--stages: platform '" + platform.name + "' has no ";
    const auto named = std::ranges::find(all, stage.node, &NamedNode::name);
    if (named == all.end())
      throw InputError(who + "node '" + stage.node + "'; it has " + names_of(all));
    const PlatformGroup* device = group_named(*named->node, stage.group);
    if (!device) throw InputError(who + "group '" + stage.group + "' on node '" + stage.node + "'");
    auto node = std::ranges::find(plan.nodes, stage.node, &PlanNode::name);
    if (node == plan.nodes.end()) node = plan.nodes.insert(plan.nodes.end(), {stage.node, {}});
    if (std::ranges::find(node->groups, stage.group, &DeviceGroup::name) != node->groups.end())
      continue;
    DeviceGroup group =
        group_at({0, device, stage.group}, recipe.batch, false, graph, recipe, whole);
    group.chunks = chunks;
    group.lanes = std::min(group.workers, static_cast<int>(chunks.size()));
    if (plan.nodes.size() == 1 && node->groups.empty() && group.kind == DeviceKind::cuda)
      plan.loaders = most_loaders;
    node->groups.push_back(std::move(group));
  }
  return plan;
}

std::vector<Stage> parse_stages(const std::string& text) {
  std::vector<Stage> stages;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string piece = text.substr(begin, end - begin);
    const std::size_t slash = piece.find('/'), equals = piece.find('='), dash = piece.rfind('-');
    Stage stage;
    bool sound = slash != std::string::npos && equals != std::string::npos && slash < equals;
    if (sound) {
      const bool range = dash != std::string::npos && dash > equals;
      const auto number = [&](std::size_t from, std::size_t to, std::uint32_t& value) {
        const auto [stop, code] = std::from_chars(piece.data() + from, piece.data() + to, value);
        sound = sound && code == std::errc{} && stop == piece.data() + to;
      };
      stage.node = piece.substr(0, slash);
      stage.group = piece.substr(slash + 1, equals - slash - 1);
      number(equals + 1, range ? dash : piece.size(), stage.first);
      stage.last = stage.first;
      if (range) number(dash + 1, piece.size(), stage.last);
    }
    if (!sound)
      throw InputError("--stages " + piece +
                       ": use NODE/GROUP=FIRST-LAST with segments counted from 0, such as "
                       "a/cpu=0-3,b/cpu=4-9");
    stages.push_back(std::move(stage));
    begin = end + 1;
  }
  return stages;
}

}  // namespace regatta::app
