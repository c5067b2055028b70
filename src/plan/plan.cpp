#include "plan/plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/files.h"

namespace regatta {
namespace {

constexpr std::array<std::string_view, 3> reduction_names{"slots", "redux", "loop"};
constexpr std::array<std::string_view, 3> perf_model_names{"fitted", "history", "regression"};

constexpr int most_team = 1024;  // more is a mistake, and would be that many threads

NodeId node_named(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes())
    if (node.name == name) return node.id;
  throw InputError("plan: the model has no operator '" + name + "'");
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

std::string_view perf_model_name(PerfModel model) {
  return perf_model_names[static_cast<std::size_t>(model)];
}

PerfModel perf_model_named(std::string_view name) {
  for (std::size_t i = 0; i < perf_model_names.size(); ++i)
    if (perf_model_names[i] == name) return static_cast<PerfModel>(i);
  throw InputError("perf model '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, {"fitted", "history", "regression"}) +
                   ": use assumed, history or regression");
}

std::vector<const DeviceGroup*> groups_of(const Plan& plan) {
  std::vector<const DeviceGroup*> groups;
  for (const PlanNode& node : plan.nodes)
    for (const DeviceGroup& group : node.groups) groups.push_back(&group);
  return groups;
}

std::vector<Chunk> chunks_of(const Plan& plan) {
  std::vector<Chunk> chunks;
  GroupId group_id;
  int first_slot = 0;
  const bool slots = plan.reduction == Reduction::slots;
  for (const DeviceGroup* group : groups_of(plan)) {
    const auto first_chunk = static_cast<std::uint32_t>(chunks.size());
    for (std::size_t i = 0; i < group->chunks.size(); ++i) {
      const int lane = static_cast<int>(i) % group->lanes;
      chunks.push_back({ChunkId{static_cast<std::uint32_t>(chunks.size())}, group_id,
                        group->chunks[i], slots ? first_slot + lane : 0,
                        ChunkId{first_chunk + static_cast<std::uint32_t>(lane)}});
    }
    first_slot += group->lanes;
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
  bool loads = plan.loaders > 0;
  for (const DeviceGroup* group : groups_of(plan)) {
    loads = loads || group->kind == DeviceKind::cpu;
    const bool blocked = channel_block(group->layout) > 1;
    check(blocked == (group->kind == DeviceKind::cpu),
          "layout " + std::string(layout_name(group->layout)) + " is not for group '" +
              group->name + "': CPUs use blocked8 or blocked16, GPUs nhwc or nchw");
    const std::string who = "group '" + group->name + "'";
    check(group->kind == DeviceKind::cpu || plan.reduction != Reduction::redux,
          "--reduction redux is for CPU groups; use slots or loop with " + who);
    check(group->workers >= 1, who + " has no worker");
    check(group->team >= 1 && group->team <= most_team,
          who + " has teams of " + std::to_string(group->team) + " threads; use 1 to " +
              std::to_string(most_team));
    check(group->team == 1 || group->kind == DeviceKind::cpu,
          who + " has teams of threads; only CPU workers have them");
    check(!group->chunks.empty(), who + " has no chunk");
    check(std::ranges::all_of(group->chunks, [](std::int64_t n) { return n > 0; }),
          who + " has a chunk without samples");
    check(group->lanes >= 1 && group->lanes <= static_cast<int>(group->chunks.size()),
          who + " has " + std::to_string(group->lanes) + " lanes for " +
              std::to_string(group->chunks.size()) + " chunks");
    samples += std::accumulate(group->chunks.begin(), group->chunks.end(), std::int64_t{0});
  }
  check(samples == batch, "its chunks hold " + std::to_string(samples) + " samples, the batch " +
                              std::to_string(batch));
  check(!plan.segments.empty(), "it has no segment");
  std::uint32_t next = 0;
  for (const Segment& segment : plan.segments) {
    const auto name = [&](NodeId id) {
      return id.value < graph.nodes().size() ? graph.node(id).name : "#" + std::to_string(id.value);
    };
    check(segment.first.value == next && segment.last >= segment.first,
          "segment " + name(segment.first) + ".." + name(segment.last) +
              " does not follow the one before it");
    next = segment.last.value + 1;
  }
  check(next == graph.nodes().size(), "its segments do not cover the model's " +
                                          std::to_string(graph.nodes().size()) + " operators");
  check(loads, "nobody loads: without a CPU group it needs loaders");
  check(plan.bucket_bytes > 0, "bucket_bytes must be positive");
  check(plan.steps_in_flight >= 1 && plan.steps_in_flight <= 64,
        "steps_in_flight must be between 1 and 64");
  check(!(plan.deterministic && plan.reduction == Reduction::redux),
        "StarPU's reduction adds in an order of its own, so --reduction redux cannot be "
        "deterministic; use slots or loop");
  return found;
}

void require_valid(const Plan& plan, const Graph& graph, std::int64_t batch) {
  const std::vector<std::string> found = faults(plan, graph, batch);
  if (found.empty()) return;
  std::string message = "the plan cannot be followed: ";
  for (std::size_t i = 0; i < found.size(); ++i) message += (i ? "; " : "") + found[i];
  throw InputError(message);
}

Json to_json(const Plan& plan, const Graph& graph) {
  Json nodes = Json::array();
  for (const PlanNode& node : plan.nodes) {
    Json groups = Json::array();
    for (const DeviceGroup& group : node.groups)
      groups.push_back({{"name", group.name},
                        {"kind", group.kind == DeviceKind::cpu ? "cpu" : "cuda"},
                        {"workers", group.workers},
                        {"layout", layout_name(group.layout)},
                        {"chunks", group.chunks},
                        {"lanes", group.lanes},
                        {"team", group.team}});
    nodes.push_back({{"name", node.name}, {"groups", groups}});
  }
  Json segments = Json::array();
  for (const Segment& segment : plan.segments)
    segments.push_back(
        {{"first", graph.node(segment.first).name}, {"last", graph.node(segment.last).name}});
  return {{"regatta_plan", 1},
          {"recipe", plan.recipe},
          {"nodes", nodes},
          {"segments", segments},
          {"reduction", reduction_name(plan.reduction)},
          {"gather_phases", plan.gather_phases},
          {"bucket_bytes", plan.bucket_bytes},
          {"steps_in_flight", plan.steps_in_flight},
          {"loaders", plan.loaders},
          {"scheduler", plan.scheduler},
          {"perf_model", perf_model_name(plan.perf_model)},
          {"deterministic", plan.deterministic}};
}

Plan plan_from_json(const Json& json, const Graph& graph) try {
  if (json.at("regatta_plan") != 1) throw InputError("plan: made by another version of regatta");
  Plan plan;
  plan.recipe = json.at("recipe");
  for (const Json& node_json : json.at("nodes")) {
    PlanNode node{node_json.at("name"), {}};
    for (const Json& group_json : node_json.at("groups")) {
      const std::string kind = group_json.at("kind");
      if (kind != "cpu" && kind != "cuda") throw InputError("plan: device kind '" + kind + "'");
      node.groups.push_back(
          {group_json.at("name"), kind == "cpu" ? DeviceKind::cpu : DeviceKind::cuda,
           group_json.at("workers"), layout_named(group_json.at("layout").get<std::string>()),
           group_json.at("chunks").get<std::vector<std::int64_t>>(), group_json.at("lanes"),
           group_json.value("team", 1)});
    }
    plan.nodes.push_back(std::move(node));
  }
  for (const Json& segment : json.at("segments"))
    plan.segments.push_back(
        {node_named(graph, segment.at("first")), node_named(graph, segment.at("last"))});
  plan.reduction = reduction_named(json.at("reduction").get<std::string>());
  plan.gather_phases = json.at("gather_phases");
  plan.bucket_bytes = json.at("bucket_bytes");
  plan.steps_in_flight = json.at("steps_in_flight");
  plan.loaders = json.at("loaders");
  plan.scheduler = json.at("scheduler");
  plan.perf_model = perf_model_named(json.value("perf_model", "fitted"));
  plan.deterministic = json.at("deterministic");
  return plan;
} catch (const nlohmann::json::exception& error) {
  throw InputError(std::string("plan: ") + error.what());
}

}  // namespace regatta
