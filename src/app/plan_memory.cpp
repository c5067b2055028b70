#include "app/plan_memory.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

#include "tasks/footprint.h"
#include "tasks/stages.h"
#include "train/memory_check.h"

namespace regatta::app {
namespace {

// The memories of the node's groups: one for all its CPUs, and one for each GPU.
std::vector<MemoryPrediction> memories_of_node(const PlanNode& node,
                                               const std::vector<Footprint>& found,
                                               std::uint32_t first_group) {
  std::vector<MemoryPrediction> memories{{node.name, "node", 1, {}}};
  std::vector<std::size_t> memory_of;  // index into `memories`, by group of the node
  for (const DeviceGroup& group : node.groups) {
    memory_of.push_back(group.kind == DeviceKind::cpu ? 0 : memories.size());
    if (group.kind != DeviceKind::cpu) memories.push_back({node.name, group.name, 1, {}});
  }
  for (const Footprint& each : found) {
    if (each.group.value < first_group || each.group.value >= first_group + memory_of.size())
      continue;
    const std::size_t memory = each.host ? 0 : memory_of[each.group.value - first_group];
    memories[memory].kinds[std::string(buffer_kind_name(each.kind))] +=
        static_cast<std::int64_t>(each.bytes);
  }
  std::erase_if(memories, [](const MemoryPrediction& memory) { return memory.kinds.empty(); });
  return memories;
}

void add(std::vector<MemoryPrediction>& all, std::vector<MemoryPrediction> more) {
  for (MemoryPrediction& memory : more) {
    const auto same = std::ranges::find_if(all, [&](const MemoryPrediction& each) {
      return each.memory == memory.memory && each.kinds == memory.kinds;
    });
    if (same == all.end())
      all.push_back(std::move(memory));
    else
      same->nodes += memory.nodes;
  }
}

}  // namespace

std::vector<MemoryPrediction> memories_of(const Graph& graph, const Plan& plan,
                                          const Recipe& recipe) {
  std::vector<MemoryPrediction> all;
  if (!plan.stages.empty()) {
    const std::vector<Footprint> found = stage_footprints(
        plan, lower_stages(plan, stage_blueprints(graph, plan, numbers_of(recipe))));
    std::uint32_t first = 0;
    for (const PlanNode& node : plan.nodes) {
      add(all, memories_of_node(node, found, first));
      first += static_cast<std::uint32_t>(node.groups.size());
    }
    return all;
  }
  // Nodes with equal groups need the same memory, so each kind of node is lowered once.
  using Group = std::tuple<std::string, DeviceKind, int, int, Layout, std::vector<std::int64_t>>;
  std::map<std::vector<Group>, std::vector<MemoryPrediction>> seen;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    std::vector<Group> key;
    for (const DeviceGroup& group : plan.nodes[n].groups)
      key.emplace_back(group.name, group.kind, group.workers, group.lanes, group.layout,
                       group.chunks);
    const auto [known, fresh] = seen.try_emplace(std::move(key));
    if (fresh) {
      const Plan own = plan_of_node(plan, n);
      const Blueprint blueprint = make_blueprint(graph, own, numbers_of(recipe), true);
      const TaskList list = lower(blueprint, ListKind::train);
      known->second =
          memories_of_node(own.nodes.front(), footprints(blueprint, {&list}), /*first_group=*/0);
    }
    add(all, known->second);
  }
  return all;
}

std::vector<MemoryPrediction> memories_of(const TrainJob& job) {
  std::vector<MemoryPrediction> all = memories_of(job.graph, job.plan, job.recipe);
  for (MemoryPrediction& memory : all) {
    const BytesByKind needed = memory.memory == "node"
                                   ? memory_by_kind(job, job.plan, Purpose::training)
                                   : gpu_memory_by_kind(job, job.plan);
    if (const auto workspace = needed.find(workspace_kind); workspace != needed.end())
      memory.kinds[workspace_kind] = static_cast<std::int64_t>(workspace->second);
  }
  return all;
}

std::string text_of(const std::vector<MemoryPrediction>& memories) {
  constexpr std::size_t most = 4;  // memories side by side on a screen
  const std::size_t shown = std::min(most, memories.size());
  if (shown == 0) return "";
  std::map<std::string, std::int64_t> totals;
  for (std::size_t m = 0; m < shown; ++m)
    for (const auto& [kind, bytes] : memories[m].kinds) totals[kind] += bytes;
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [kind, bytes] : totals) order.emplace_back(-bytes, kind);
  std::ranges::sort(order);

  const auto cell = [](const std::string& text) {
    char padded[40];
    std::snprintf(padded, sizeof padded, " %16.16s", text.c_str());
    return std::string(padded);
  };
  const auto megabytes = [&](std::int64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MB", 1e-6 * static_cast<double>(bytes));
    return cell(text);
  };
  const auto first = [](const std::string& text) {
    char padded[40];
    std::snprintf(padded, sizeof padded, "  %-26.26s", text.c_str());
    return std::string(padded);
  };
  std::string text = first("memory");
  for (std::size_t m = 0; m < shown; ++m) {
    const MemoryPrediction& memory = memories[m];
    text += cell(memory.memory == "node" ? memory.node : memory.node + "/" + memory.memory);
  }
  text += "\n";
  for (const auto& [negative, kind] : order) {
    text += first(kind);
    for (std::size_t m = 0; m < shown; ++m) {
      const auto found = memories[m].kinds.find(kind);
      text += found == memories[m].kinds.end() ? cell("-") : megabytes(found->second);
    }
    text += "\n";
  }
  text += first("all");
  for (std::size_t m = 0; m < shown; ++m) text += megabytes(memories[m].bytes());
  text += "\n";
  for (std::size_t m = 0; m < shown; ++m)
    if (memories[m].nodes > 1)
      text += "  " + std::to_string(memories[m].nodes) + " memories are like " + memories[m].node +
              "'s\n";
  if (memories.size() > most)
    text += "  and " + std::to_string(memories.size() - most) + " others; --json FILE has all\n";
  return text;
}

}  // namespace regatta::app
