#include <algorithm>
#include <cmath>
#include <set>

#include "app/node_places.h"
#include "app/node_plan.h"
#include "base/error.h"
#include "tasks/footprint.h"
#include "tasks/stages.h"

namespace regatta::app {
namespace {

std::string megabytes(double bytes) { return std::to_string(std::llround(bytes / 1e6)) + " MB"; }

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

// Bytes that a group of a node's plan needs with so many samples, cut into as many chunks.
std::size_t bytes_with(Plan plan, GroupId id, std::int64_t samples, const Graph& graph,
                       const Recipe& recipe) {
  DeviceGroup& group = plan.nodes.front().groups[id.value];
  const std::int64_t count =
      std::min<std::int64_t>(std::ssize(group.chunks), granules_of(graph, samples));
  group.chunks = equal_chunks(samples, count, granule_of(graph));
  group.lanes = std::min(group.lanes, static_cast<int>(count));
  plan.order.clear();
  plan.placement = Placement::dynamic;
  const Blueprint blueprint = make_blueprint(graph, plan, numbers_of(recipe), true);
  const TaskList list = lower(blueprint, ListKind::train);
  return peak_bytes(blueprint, footprints(blueprint, {&list}), id);
}

// The most samples of a group whose buffers fit; 0: not even one granule's do.
std::int64_t largest_share(const Plan& plan, GroupId id, std::size_t room, const Graph& graph,
                           const Recipe& recipe) {
  const std::int64_t granule = granule_of(graph);
  std::int64_t fits = 0, too_many = granules_of(graph, share_of(*groups_of(plan)[id.value]));
  while (too_many - fits > 1) {
    const std::int64_t middle = (fits + too_many) / 2;
    (bytes_with(plan, id, middle * granule, graph, recipe) <= room ? fits : too_many) = middle;
  }
  return fits * granule;
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
    for (const DeviceGroup& group : plan.nodes[n].groups) {
      const PlatformGroup* device = group_named(*there, group.name);
      key += "/" + (device ? device->name : group.name);
      for (const std::int64_t chunk : group.chunks) key += "," + std::to_string(chunk);
    }
    if (!seen.insert(std::move(key)).second) continue;
    const Plan own = plan_of_node(plan, n);
    const Blueprint blueprint = make_blueprint(graph, own, numbers_of(recipe), true);
    const TaskList list = lower(blueprint, ListKind::train);
    const std::vector<Footprint> found = footprints(blueprint, {&list});
    for (std::uint32_t g = 0; g < plan.nodes[n].groups.size(); ++g) {
      const std::string& name = plan.nodes[n].groups[g].name;
      const PlatformGroup* device = group_named(*there, name);
      std::string text =
          shortage(plan.nodes[n].name + "/" + name, peak_bytes(blueprint, found, GroupId{g}),
                   device, found, GroupId{g});
      if (!text.empty()) {
        const std::int64_t most =
            largest_share(own, GroupId{g}, static_cast<std::size_t>(device->memory), graph, recipe);
        text += "; it holds " + std::to_string(most) + " of its " +
                std::to_string(share_of(plan.nodes[n].groups[g])) + " samples";
      }
      texts.push_back(std::move(text));
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
  const bool recomputes = std::ranges::any_of(plan.segments, &Segment::recomputed);
  // A pipeline keeps all chunks of a step: cutting finer does not help.
  throw InputError("the plan does not fit into memory: " + text + "; use a smaller --batch, " +
                   (staged       ? "or more stages"
                    : recomputes ? "more nodes or more chunks"
                                 : "more nodes or more chunks, or --recompute all"));
}

}  // namespace regatta::app
