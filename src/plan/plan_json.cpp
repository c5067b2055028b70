#include <unordered_map>

#include "base/error.h"
#include "base/json_reader.h"
#include "plan/plan.h"

namespace regatta {
namespace {

// Version 1 had `workers_submit` in place of `cpus`.
constexpr int oldest_version = 1, version = 2;
// Far beyond any machine; a file that says more is mistaken, and must not fill the memory.
constexpr std::int64_t most_workers = 1 << 16, most_samples = std::int64_t{1} << 32;
constexpr double most_slow = 1000, most_watts = 1e6, most_seconds = 1e9;

Json group_json(const DeviceGroup& group) {
  Json json{{"name", group.name},       {"kind", group.kind == DeviceKind::cpu ? "cpu" : "cuda"},
            {"workers", group.workers}, {"layout", layout_name(group.layout)},
            {"share", share_of(group)}, {"chunks", group.chunks},
            {"lanes", group.lanes},     {"team", group.team}};
  if (!group.slow.empty()) json["slow"] = group.slow;
  if (!group.state.empty()) json["state"] = group.state;
  for (const WorkerPower& power : group.powers)
    json["powers"].push_back({{"slow", power.slow}, {"watts", power.watts}});
  return json;
}

DeviceKind kind_named(const std::string& name) {
  if (name == "cpu") return DeviceKind::cpu;
  if (name == "cuda") return DeviceKind::cuda;
  throw InputError("device kind '" + name + "' is unknown: use cpu or cuda");
}

class PlanReader {
 public:
  PlanReader(const Graph* graph, std::vector<std::string>& faults)
      : faults_(faults), any_operator_(!graph) {
    if (!graph) return;
    for (const Node& node : graph->nodes()) nodes_.emplace(node.name, node.id);
  }

  Plan read(const Json& json, const std::string& at) {
    Plan plan;
    ObjectReader reader(json, at, faults_);
    const std::size_t before = faults_.size();
    const std::int64_t written = reader.whole("regatta_plan", 0, INT64_MAX);
    if (faults_.size() == before && (written < oldest_version || written > version)) {
      reader.wrong("regatta_plan", "version " + std::to_string(written) +
                                       " is of another version of regatta, this one reads 1 and 2; "
                                       "make it again with regatta plan");
      return plan;
    }
    plan.recipe = reader.text("recipe");
    plan.platform = reader.text("platform", "");
    reader.each("nodes", [&](const Json& node, const std::string& place) {
      plan.nodes.push_back(node_from(node, place));
    });
    reader.each("segments", [&](const Json& segment, const std::string& place) {
      ObjectReader ends(segment, place, faults_);
      const NodeId first = operator_named(ends, "first"), last = operator_named(ends, "last");
      plan.segments.push_back({first, last, ends.truth("recomputed", false)});
      ends.finish();
    });
    reader.each(
        "stages",
        [&](const Json& stage, const std::string& place) {
          plan.stages.push_back(stage_from(stage, place));
        },
        false);
    plan.reduction = reader.word<Reduction>("reduction", reduction_named);
    plan.backward = reader.word<Backward>("backward", backward_named, Backward::whole);
    plan.update = reader.word<NodeUpdate>("update", node_update_named, NodeUpdate::ring);
    plan.gather_phases = reader.truth("gather_phases");
    plan.gather_loads = reader.truth("gather_loads", false);
    plan.cpus = static_cast<int>(reader.whole("cpus", 0, most_workers, 0));
    plan.bucket_bytes = reader.whole("bucket_bytes", 1, INT64_MAX);
    plan.steps_in_flight = static_cast<int>(reader.whole("steps_in_flight", 1, 64));
    plan.loaders = static_cast<int>(reader.whole("loaders", 0, most_workers));
    plan.pace_s = reader.number("pace_s", 0, most_seconds, 0);
    if (written == 1 && reader.truth("workers_submit", false)) plan.cpus = threads_of(plan);
    plan.scheduler = reader.text("scheduler");
    plan.perf_model = reader.word<PerfModel>("perf_model", perf_model_named, Plan{}.perf_model);
    plan.deterministic = reader.truth("deterministic");
    plan.placement = reader.word<Placement>("placement", placement_named, Placement::dynamic);
    reader.each(
        "order",
        [&](const Json& worker, const std::string& place) {
          plan.order.push_back(tasks_from(worker, place));
        },
        false);
    reader.finish();
    return plan;
  }

 private:
  PlanNode node_from(const Json& json, const std::string& place) {
    PlanNode node;
    ObjectReader reader(json, place, faults_);
    node.name = reader.text("name");
    reader.each("groups", [&](const Json& group, const std::string& where) {
      node.groups.push_back(group_from(group, where));
    });
    reader.finish();
    return node;
  }

  DeviceGroup group_from(const Json& json, const std::string& place) {
    DeviceGroup group;
    ObjectReader reader(json, place, faults_);
    group.name = reader.text("name");
    group.kind = reader.word<DeviceKind>("kind", kind_named);
    group.workers = static_cast<int>(reader.whole("workers", 1, most_workers));
    group.layout = reader.word<Layout>("layout", layout_named);
    group.chunks = reader.wholes("chunks", 1, most_samples);
    group.lanes = static_cast<int>(reader.whole("lanes", 1, most_workers));
    group.team = static_cast<int>(reader.whole("team", 1, most_workers, 1));
    group.state = reader.text("state", "");
    reader.each(
        "slow",
        [&](const Json& factor, const std::string& where) {
          const bool sound =
              factor.is_number() && factor.get<double>() >= 1 && factor.get<double>() <= most_slow;
          if (!sound) faults_.push_back(where + ": a worker is slowed down by 1 to 1000 times");
          group.slow.push_back(sound ? factor.get<double>() : 1);
        },
        false);
    reader.each(
        "powers",
        [&](const Json& power, const std::string& where) {
          ObjectReader worker(power, where, faults_);
          group.powers.push_back(
              {worker.number("slow", 1, most_slow), worker.number("watts", 0, most_watts)});
          worker.finish();
        },
        false);
    const std::int64_t share = share_of(group);
    if (const std::int64_t said = reader.whole("share", 0, INT64_MAX, share); said != share)
      reader.wrong("share",
                   std::to_string(said) + " samples, but its chunks hold " + std::to_string(share));
    reader.finish();
    return group;
  }

  Stage stage_from(const Json& json, const std::string& place) {
    Stage stage;
    ObjectReader reader(json, place, faults_);
    stage.node = reader.text("node");
    stage.group = reader.text("group");
    stage.first = static_cast<std::uint32_t>(reader.whole("first", 0, UINT32_MAX));
    stage.last = static_cast<std::uint32_t>(reader.whole("last", 0, UINT32_MAX));
    reader.finish();
    return stage;
  }

  std::vector<std::uint32_t> tasks_from(const Json& json, const std::string& place) {
    std::vector<std::uint32_t> tasks;
    if (!json.is_array()) {
      faults_.push_back(place + ": it is no list of tasks");
      return tasks;
    }
    for (std::size_t i = 0; i < json.size(); ++i)
      tasks.push_back(static_cast<std::uint32_t>(
          whole_at(json[i], place + "[" + std::to_string(i) + "]", 0, UINT32_MAX, faults_)));
    return tasks;
  }

  NodeId operator_named(ObjectReader& reader, const char* key) {
    const std::size_t before = faults_.size();
    const std::string name = reader.text(key);
    const auto found = nodes_.find(name);
    if (found != nodes_.end()) return found->second;
    if (faults_.size() == before && !any_operator_)
      reader.wrong(key, "the model has no operator '" + name + "'");
    return {};
  }

  std::vector<std::string>& faults_;
  bool any_operator_;
  std::unordered_map<std::string, NodeId> nodes_;
};

}  // namespace

Json to_json(const Plan& plan, const Graph& graph) {
  Json nodes = Json::array();
  for (const PlanNode& node : plan.nodes) {
    Json groups = Json::array();
    for (const DeviceGroup& group : node.groups) groups.push_back(group_json(group));
    nodes.push_back({{"name", node.name}, {"groups", groups}});
  }
  Json segments = Json::array();
  for (const Segment& segment : plan.segments) {
    segments.push_back(
        {{"first", graph.node(segment.first).name}, {"last", graph.node(segment.last).name}});
    if (segment.recomputed) segments.back()["recomputed"] = true;
  }
  Json json{{"regatta_plan", version},
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
            {"deterministic", plan.deterministic},
            {"placement", placement_name(plan.placement)}};
  // Left out where they say nothing.
  if (!plan.platform.empty()) json["platform"] = plan.platform;
  if (plan.backward != Backward::whole) json["backward"] = backward_name(plan.backward);
  if (plan.gather_loads) json["gather_loads"] = true;
  if (plan.pace_s > 0) json["pace_s"] = plan.pace_s;
  if (plan.cpus > 0) json["cpus"] = plan.cpus;
  if (plan.nodes.size() > 1) json["update"] = node_update_name(plan.update);
  for (const Stage& stage : plan.stages)
    json["stages"].push_back({{"node", stage.node},
                              {"group", stage.group},
                              {"first", stage.first},
                              {"last", stage.last}});
  if (!plan.order.empty()) json["order"] = plan.order;
  return json;
}

Plan plan_from_json(const Json& json, const Graph* graph, const std::string& at,
                    std::vector<std::string>& faults) {
  return PlanReader(graph, faults).read(json, at);
}

Plan plan_from_json(const Json& json, const Graph& graph) {
  std::vector<std::string> faults;
  Plan plan = plan_from_json(json, &graph, "", faults);
  require_none("plan", faults);
  return plan;
}

}  // namespace regatta
