#include "app/node_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "app/command.h"
#include "app/tuning_flags.h"
#include "base/error.h"
#include "plan/segments.h"
#include "plan/shares.h"
#include "tasks/footprint.h"
#include "tasks/placement.h"
#include "tasks/play.h"
#include "tasks/stages.h"
#include "train/job.h"

namespace regatta::app {
namespace {

constexpr int most_loaders = 4;
// More chunks than stages keep all of them busy; with four for each, a quarter is lost at most.
constexpr std::int64_t chunks_of_a_stage = 4;

struct NamedNode {
  std::string name;
  const PlatformNode* node;
};

// As the platform counts them: NAME-0, NAME-1, ... where there are several alike.
std::vector<NamedNode> all_nodes(const Platform& platform) {
  std::vector<NamedNode> nodes;
  for (const PlatformNode& node : platform.nodes)
    for (int i = 0; i < node.count; ++i)
      nodes.push_back({node.count == 1 ? node.name : node.name + "-" + std::to_string(i), &node});
  return nodes;
}

// The first few: of a thousand nodes nobody reads all.
std::string names_of(const std::vector<NamedNode>& all) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
    text += (i > 0 ? ", " : "") + all[i].name;
  return all.size() > most ? text + " and " + std::to_string(all.size() - most) + " more" : text;
}

std::vector<NamedNode> chosen_nodes(const Platform& platform,
                                    const std::vector<std::string>& names) {
  std::vector<NamedNode> all = all_nodes(platform);
  if (names.empty()) return all;
  std::vector<NamedNode> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(all, name, &NamedNode::name);
    if (found == all.end())
      throw InputError("--nodes: platform '" + platform.name + "' has no node '" + name +
                       "'; it has " + names_of(all));
    chosen.push_back(*found);
  }
  return chosen;
}

bool has_gpus(const PlatformNode& node) {
  return std::ranges::any_of(
      node.groups, [](const PlatformGroup& group) { return group.kind == DeviceKind::cuda; });
}

// What computes on a node and has a share of its own: each GPU, or its cores.
struct Place {
  std::size_t node = 0;  // of those chosen
  const PlatformGroup* group = nullptr;
  std::string name;  // in the plan
};

std::vector<Place> places_on(const std::vector<NamedNode>& nodes) {
  std::vector<Place> places;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const bool gpus = has_gpus(*nodes[n].node);
    for (const PlatformGroup& group : nodes[n].node->groups) {
      if (gpus != (group.kind == DeviceKind::cuda)) continue;
      for (int unit = 0; unit < (gpus ? group.count : 1); ++unit)
        places.push_back(
            {n, &group,
             gpus && group.count > 1 ? group.name + "-" + std::to_string(unit) : group.name});
    }
  }
  return places;
}

// By the team of its cores if there are other nodes: fewer chunks meet, as `regatta simulate` has
// it.
DeviceGroup group_at(const Place& place, std::int64_t share, bool several, const Graph& graph,
                     const Recipe& recipe, const NodeOptions& options) {
  DeviceGroup group;
  if (place.group->kind == DeviceKind::cuda) {
    group.kind = DeviceKind::cuda;
    group.layout = options.plan.gpu_layout;
    group.chunks = {share};
  } else {
    Recipe part = recipe;
    part.batch = share;
    PlanOptions plan = options.plan;
    plan.workers = place.group->count;
    plan.devices = {DeviceKind::cpu};
    if (several && !plan.chunks && !plan.team) plan.team = place.group->count;
    group = make_plan(graph, part, plan).nodes.front().groups.front();
  }
  group.name = place.name;
  return group;
}

// The platform's group that a plan's group is of.
const PlatformGroup* group_named(const PlatformNode& node, const std::string& name) {
  for (const PlatformGroup& group : node.groups)
    if (name == group.name || (group.count > 1 && name.starts_with(group.name + "-")))
      return &group;
  return nullptr;
}

std::string megabytes(double bytes) { return std::to_string(std::llround(bytes / 1e6)) + " MB"; }

// The samples of each place given.
Plan plan_with(const std::vector<std::int64_t>& shares, const std::vector<Place>& places,
               const std::vector<NamedNode>& nodes, const Graph& graph, const Recipe& recipe,
               const Platform& platform, const NodeOptions& options) {
  Plan plan;
  plan.recipe = recipe.fingerprint();
  plan.platform = platform.fingerprint();
  plan.reduction = options.plan.reduction;
  plan.segments =
      segments_named(graph, options.plan.segments.value_or(nodes.size() > 1 ? "block" : "step"));
  plan.update = options.update;
  for (const NamedNode& node : nodes) {
    plan.nodes.push_back({node.name, {}});
    if (has_gpus(*node.node)) plan.loaders = most_loaders;
  }
  for (std::size_t p = 0; p < places.size(); ++p)
    plan.nodes[places[p].node].groups.push_back(
        group_at(places[p], shares[p], nodes.size() > 1, graph, recipe, options));
  return plan;
}

}  // namespace

std::vector<double> seconds_to_gradients(const Plan& plan, const sim::PreparedFleet& fleet) {
  std::vector<std::vector<double>> by_kind;  // by kind of node and group
  for (const sim::RankKind& kind : fleet.fleet().kinds) {
    const auto groups = groups_of(kind.blueprint->plan);
    std::vector<double>& work = by_kind.emplace_back(groups.size(), 0);
    for (const Task& task : kind.list->tasks) {
      if (task.on_host || task.flops <= 0) continue;
      const int workers = groups[task.group.value]->workers;
      work[task.group.value] += kind.costs->of(task, workers).seconds / workers;
    }
  }
  std::vector<double> seconds;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const auto& work = by_kind[static_cast<std::size_t>(fleet.fleet().ranks[n].kind)];
    seconds.insert(seconds.end(), work.begin(), work.end());
  }
  return seconds;
}

namespace {

// What the shares of a plan cost, by group.
struct ShareCosts {
  std::vector<TimedShare> shares;
  std::vector<double> bytes;   // of memory that the share needs
  std::vector<double> memory;  // bytes that the group has; 0: not known
};

ShareCosts share_costs(const Plan& plan, sim::PreparedFleet fleet) {
  fleet.follow(plan);
  ShareCosts found;
  const std::vector<double> seconds = seconds_to_gradients(plan, fleet);
  for (const DeviceGroup* group : groups_of(plan))
    found.shares.push_back({share_of(*group), Seconds(seconds[found.shares.size()])});
  std::map<int, std::vector<sim::PreparedFleet::Memory>> by_kind;  // of node
  for (const sim::Rank& rank : fleet.fleet().ranks) {
    const auto [known, fresh] = by_kind.try_emplace(rank.kind);
    if (fresh) known->second = fleet.memory(rank.kind);
    for (const sim::PreparedFleet::Memory& group : known->second) {
      found.bytes.push_back(static_cast<double>(group.bytes));
      found.memory.push_back(static_cast<double>(group.room));
    }
  }
  return found;
}

std::vector<Participant> participants_of(const ShareCosts& earlier, const ShareCosts& latest) {
  std::vector<Participant> participants;
  for (std::size_t g = 0; g < latest.shares.size(); ++g)
    participants.push_back(linear_through(earlier.shares[g], latest.shares[g]));
  return participants;
}

// Limits each group to the samples that its memory holds: bytes grow evenly with samples. A batch
// that does not fit at all is not limited: require_memory tells which group lacks how much.
std::vector<Participant> within_memory(std::vector<Participant> participants,
                                       const ShareCosts& earlier, const ShareCosts& latest,
                                       std::int64_t batch) {
  std::vector<Participant> limited = participants;
  double room = 0;
  for (std::size_t g = 0; g < limited.size(); ++g) {
    const auto samples = static_cast<double>(latest.shares[g].samples);
    const double more = samples - static_cast<double>(earlier.shares[g].samples);
    const double per_sample =
        more == 0 ? latest.bytes[g] / samples : (latest.bytes[g] - earlier.bytes[g]) / more;
    double most = static_cast<double>(batch);
    if (latest.memory[g] > 0 && per_sample > 0)
      most = std::min(most, samples + (latest.memory[g] - latest.bytes[g]) / per_sample);
    if (!(most >= 1)) return participants;
    limited[g].most = static_cast<std::int64_t>(most);
    room += std::floor(most);
  }
  return room >= static_cast<double>(batch) ? limited : participants;
}

}  // namespace

Plan plan_over_nodes(const Graph& graph, const Recipe& recipe, const Platform& platform,
                     const sim::Profiles& profiles, const NodeOptions& options) {
  const std::vector<NamedNode> nodes = chosen_nodes(platform, options.nodes);
  const std::vector<Place> places = places_on(nodes);
  if (recipe.batch < std::ssize(places))
    throw InputError("--batch " + std::to_string(recipe.batch) + " cannot be shared among " +
                     std::to_string(places.size()) + " groups: use more samples or fewer --nodes");
  const auto with = [&](const std::vector<std::int64_t>& shares) {
    return plan_with(shares, places, nodes, graph, recipe, platform, options);
  };
  if (options.shares != "equal" && options.shares != "speed") {
    const std::vector<std::int64_t> shares = samples_of(options.shares);
    if (shares.size() != places.size())
      throw InputError("--shares names " + std::to_string(shares.size()) + " numbers for " +
                       std::to_string(places.size()) + " groups");
    return with(shares);
  }
  const std::vector<std::int64_t> equal = equal_chunks(recipe.batch, std::ssize(places));
  if (options.shares == "equal") return with(equal);
  // The costs of shares of two sizes tell what a share costs beside its samples.
  const auto costs = [&](const std::vector<std::int64_t>& shares) {
    return share_costs(with(shares), sim::PreparedFleet(graph, recipe, platform, profiles));
  };
  const ShareCosts first = costs(equal);
  const ShareCosts second = costs(balanced_shares(participants_of(first, first), recipe.batch));
  return with(balanced_shares(
      within_memory(participants_of(first, second), first, second, recipe.batch), recipe.batch));
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
  plan.segments = segments_named(graph, options.plan.segments.value_or("block"));
  plan.gather_phases = false;
  plan.stages = stages;
  const std::vector<std::int64_t> chunks =
      options.plan.chunks && options.plan.chunks->size() > 1
          ? *options.plan.chunks
          : equal_chunks(recipe.batch,
                         std::min(options.plan.chunks ? options.plan.chunks->front()
                                                      : chunks_of_a_stage * std::ssize(stages),
                                  recipe.batch));
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
        group_at({0, device, stage.group}, recipe.batch, true, graph, recipe, whole);
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

namespace {

// "'a/cpu' needs 3 MB of 2 MB, most of it for ..."; nothing if it fits.
std::string shortage(const std::string& who, std::size_t needed, const PlatformGroup* group,
                     const std::vector<Footprint>& found, GroupId id) {
  if (!group || group->memory <= 0 || needed <= static_cast<std::size_t>(group->memory)) return {};
  std::string text = "'" + who + "' needs " + megabytes(static_cast<double>(needed)) + " of " +
                     megabytes(static_cast<double>(group->memory)) + ", most of it for ";
  int told = 0;
  for (const Footprint& each : found)
    if (each.group == id && told++ < 3)
      text += (told > 1 ? ", " : "") + std::string(buffer_kind_name(each.kind)) + " " +
              megabytes(static_cast<double>(each.bytes));
  return text;
}

// The platform's node that a node of the plan is; this machine has any name.
const PlatformNode* node_named(const std::vector<NamedNode>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &NamedNode::name);
  if (found != all.end()) return found->node;
  return all.size() == 1 ? all.front().node : nullptr;
}

std::vector<std::string> shortages_of_stages(const Graph& graph, const Plan& plan,
                                             const Recipe& recipe,
                                             const std::vector<NamedNode>& all) {
  std::vector<std::string> texts;
  const TaskList list = lower_stages(plan, stage_blueprints(graph, plan, numbers_of(recipe)));
  const std::vector<Footprint> found = stage_footprints(plan, list);
  GroupId id;
  for (const PlanNode& node : plan.nodes)
    for (const DeviceGroup& group : node.groups) {
      if (const PlatformNode* there = node_named(all, node.name))
        texts.push_back(shortage(node.name + "/" + group.name, stage_bytes(found, id),
                                 group_named(*there, group.name), found, id));
      ++id.value;
    }
  return texts;
}

std::vector<std::string> shortages_of_nodes(const Graph& graph, const Plan& plan,
                                            const Recipe& recipe,
                                            const std::vector<NamedNode>& all) {
  std::vector<std::string> texts;
  std::set<std::string> seen;  // nodes of one kind with the same share need the same
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlatformNode* there = node_named(all, plan.nodes[n].name);
    if (!there) continue;
    std::string key = there->name;
    for (const DeviceGroup& group : plan.nodes[n].groups)
      for (const std::int64_t chunk : group.chunks) key += "/" + std::to_string(chunk);
    if (!seen.insert(std::move(key)).second) continue;
    const Blueprint blueprint =
        make_blueprint(graph, plan_of_node(plan, n), numbers_of(recipe), true);
    const TaskList list = lower(blueprint, Job::train);
    const std::vector<Footprint> found = footprints(blueprint, {&list});
    for (std::uint32_t g = 0; g < plan.nodes[n].groups.size(); ++g) {
      const std::string& name = plan.nodes[n].groups[g].name;
      texts.push_back(shortage(plan.nodes[n].name + "/" + name,
                               peak_bytes(blueprint, found, GroupId{g}), group_named(*there, name),
                               found, GroupId{g}));
    }
  }
  return texts;
}

}  // namespace

void require_memory(const Graph& graph, const Plan& plan, const Recipe& recipe,
                    const Platform& platform) {
  const std::vector<NamedNode> all = all_nodes(platform);
  const bool staged = !plan.stages.empty();
  std::string text;
  for (const std::string& each : staged ? shortages_of_stages(graph, plan, recipe, all)
                                        : shortages_of_nodes(graph, plan, recipe, all))
    if (!each.empty()) text += (text.empty() ? "" : "; ") + each;
  if (text.empty()) return;
  // A pipeline keeps all chunks of a step: cutting finer does not help.
  throw InputError("the plan does not fit into memory: " + text + "; use a smaller --batch, " +
                   (staged ? "or more stages" : "more nodes or more chunks"));
}

}  // namespace regatta::app
