#include "plan/plan_file.h"

#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"

namespace regatta {
namespace {

constexpr int oldest_version = 1, version = 2;
constexpr double most_seconds = 1e12, most_joules = 1e15;
constexpr std::array<std::string_view, 4> role_names{"compute", "load", "update", "rest"};

Json to_json(const Prediction& predicted) {
  Json groups = Json::array();
  for (const GroupPrediction& group : predicted.groups) {
    groups.push_back({{"node", group.node},
                      {"group", group.group},
                      {"busy_s", group.busy_s},
                      {"peak_bytes", group.peak_bytes}});
    if (group.energy_j) groups.back()["energy_j"] = *group.energy_j;
  }
  Json memories = Json::array();
  for (const MemoryPrediction& memory : predicted.memories)
    memories.push_back({{"node", memory.node},
                        {"memory", memory.memory},
                        {"nodes", memory.nodes},
                        {"bytes", memory.bytes()},
                        {"kinds", memory.kinds}});
  return {{"step_s", predicted.step.seconds},
          {"step_low_s", predicted.step.low},
          {"step_high_s", predicted.step.high},
          {"energy_j", predicted.energy_j},
          {"groups", groups},
          {"memories", memories}};
}

MemoryPrediction memory_from(const Json& json, const std::string& at,
                             std::vector<std::string>& faults) {
  MemoryPrediction memory;
  ObjectReader reader(json, at, faults);
  memory.node = reader.text("node");
  memory.memory = reader.text("memory");
  memory.nodes = reader.whole("nodes", 1, INT64_MAX, 1);
  if (const Json* kinds = reader.object("kinds"))
    for (const auto& [kind, bytes] : kinds->items())
      memory.kinds[kind] = whole_at(bytes, at + ".kinds." + kind, 0, INT64_MAX, faults);
  if (reader.whole("bytes", 0, INT64_MAX, memory.bytes()) != memory.bytes())
    reader.wrong("bytes", "its kinds hold " + std::to_string(memory.bytes()));
  reader.finish();
  return memory;
}

Prediction prediction_from(const Json& json, const std::string& at,
                           std::vector<std::string>& faults) {
  Prediction predicted;
  ObjectReader reader(json, at, faults);
  predicted.step.seconds = reader.number("step_s", 0, most_seconds);
  predicted.step.low = reader.number("step_low_s", 0, most_seconds, predicted.step.seconds);
  predicted.step.high = reader.number("step_high_s", 0, most_seconds, predicted.step.seconds);
  if (predicted.step.low > predicted.step.seconds || predicted.step.seconds > predicted.step.high)
    reader.wrong("step_s", "it lies outside of its interval");
  predicted.energy_j = reader.number("energy_j", 0, most_joules);
  reader.each(
      "groups",
      [&](const Json& group_json, const std::string& place) {
        GroupPrediction group;
        ObjectReader each(group_json, place, faults);
        group.node = each.text("node");
        group.group = each.text("group");
        group.busy_s = each.number("busy_s", 0, most_seconds);
        group.peak_bytes = each.whole("peak_bytes", 0, INT64_MAX);
        if (const double joules = each.number("energy_j", 0, most_joules, -1); joules >= 0)
          group.energy_j = joules;
        each.finish();
        predicted.groups.push_back(std::move(group));
      },
      false);
  reader.each(
      "memories",
      [&](const Json& memory, const std::string& place) {
        predicted.memories.push_back(memory_from(memory, place, faults));
      },
      false);
  reader.finish();
  return predicted;
}

PlannedBucket bucket_from(const Json& json, std::int64_t written, Reduction reduction,
                          const std::string& at, std::vector<std::string>& faults) {
  PlannedBucket bucket;
  ObjectReader reader(json, at, faults);
  bucket.segment = static_cast<std::uint32_t>(reader.whole("segment", 0, UINT32_MAX));
  bucket.bytes = reader.whole("bytes", 0, INT64_MAX);
  if (written == 1) {
    const std::size_t before = faults.size();
    const auto said = reader.word<Reduction>("reduction", reduction_named);
    // All buckets are reduced in one way; a file that asks for two must not be half followed.
    if (faults.size() == before && said != reduction)
      reader.wrong("reduction", std::string(reduction_name(said)) + ", but the plan's is " +
                                    std::string(reduction_name(reduction)));
  }
  reader.finish();
  return bucket;
}

// What must hold between the parts of a file.
void check(const PlanFile& file, const Graph& graph, std::vector<std::string>& found) {
  for (const std::string& fault : faults(file.plan, graph, file.recipe.batch))
    found.push_back("plan: " + fault);
  if (file.plan.recipe != file.recipe.fingerprint())
    found.push_back("plan.recipe: " + file.plan.recipe +
                    " is not the fingerprint of the file's recipe, " + file.recipe.fingerprint());
  for (std::size_t i = 0; i < file.buckets.size(); ++i)
    if (file.buckets[i].segment >= file.plan.segments.size())
      found.push_back("buckets[" + std::to_string(i) + "].segment: there is no segment " +
                      std::to_string(file.buckets[i].segment));
  if (!file.predicted) return;
  for (std::size_t i = 0; i < file.predicted->groups.size(); ++i) {
    const GroupPrediction& group = file.predicted->groups[i];
    bool known = false;
    for (const PlanNode& node : file.plan.nodes)
      for (const DeviceGroup& each : node.groups)
        known = known || (node.name == group.node && each.name == group.group);
    if (!known)
      found.push_back("predicted.groups[" + std::to_string(i) + "]: the plan has no group '" +
                      group.node + "/" + group.group + "'");
  }
}

}  // namespace

std::int64_t MemoryPrediction::bytes() const {
  std::uint64_t sum = 0;  // unsigned: numbers read from a file may overflow
  for (const auto& [kind, bytes] : kinds) sum += static_cast<std::uint64_t>(bytes);
  return static_cast<std::int64_t>(sum);
}

std::string_view role_name(Role role) { return role_names[static_cast<std::size_t>(role)]; }

Role role_named(std::string_view name) {
  for (std::size_t i = 0; i < role_names.size(); ++i)
    if (role_names[i] == name) return static_cast<Role>(i);
  throw InputError("role '" + std::string(name) +
                   "' is unknown: use compute, load, update or rest");
}

Json to_json(const PlanFile& file, const Graph& graph) {
  Json json{{"$schema", "plan.schema.json"},
            {"regatta_plan_file", version},
            {"recipe", file.recipe.to_json()}};
  if (file.network) json["network"] = *file.network;
  json["platform"] = file.platform_name;
  json["plan"] = to_json(file.plan, graph);
  Json buckets = Json::array();
  for (const PlannedBucket& bucket : file.buckets)
    buckets.push_back({{"segment", bucket.segment}, {"bytes", bucket.bytes}});
  json["buckets"] = buckets;
  if (file.predicted) json["predicted"] = to_json(*file.predicted);
  for (const GroupRole& each : file.roles)
    json["roles"].push_back({{"node", each.node},
                             {"group", each.group},
                             {"role", role_name(each.role)},
                             {"reason", each.reason}});
  return json;
}

PlanFile plan_file_from_json(const Json& json, const GraphOf& graph_of) {
  const std::string who = "plan file";
  if (!json.is_object() || !json.contains("regatta_plan_file"))
    throw InputError(who + ": it is none; regatta plan writes them");
  const Json& written = json["regatta_plan_file"];
  if (!written.is_number_integer() || written < oldest_version || written > version)
    throw InputError(who +
                     ": it is of another version of regatta, this one reads versions 1 and 2; "
                     "make it again with regatta plan");
  std::vector<std::string> faults;
  ObjectReader reader(json, "", faults);
  reader.text("$schema", "");
  reader.whole("regatta_plan_file", oldest_version, version);
  PlanFile file;
  std::optional<Graph> graph;
  if (const Json* network = reader.object("network", false)) file.network = *network;
  if (const Json* recipe = reader.object("recipe")) {
    const std::string reason = why_not([&] {
      file.recipe = recipe_from_json(*recipe);
      graph = graph_of(file.recipe, file.network);
    });
    if (!reason.empty()) reader.wrong("recipe", reason);
  }
  file.platform_name = reader.text("platform", "");
  const std::size_t before = faults.size();
  if (const Json* plan = reader.object("plan"))
    file.plan = plan_from_json(*plan, graph ? &*graph : nullptr, "plan", faults);
  const bool plan_read = faults.size() == before;
  reader.each(
      "buckets",
      [&](const Json& bucket, const std::string& place) {
        file.buckets.push_back(bucket_from(bucket, written, file.plan.reduction, place, faults));
      },
      false);
  if (const Json* predicted = reader.object("predicted", false))
    file.predicted = prediction_from(*predicted, "predicted", faults);
  reader.each(
      "roles",
      [&](const Json& role, const std::string& place) {
        ObjectReader each(role, place, faults);
        file.roles.push_back({each.text("node"), each.text("group"),
                              each.word<Role>("role", role_named), each.text("reason")});
        each.finish();
      },
      false);
  reader.finish();
  // Invariants of a plan that was read in part say nothing.
  if (graph && plan_read) check(file, *graph, faults);
  require_none(who, faults);
  return file;
}

void write_plan_file(const std::filesystem::path& path, const PlanFile& file, const Graph& graph) {
  write_file(path, to_json(file, graph).dump(1) + "\n");
}

PlanFile read_plan_file(const std::filesystem::path& path, const GraphOf& graph_of) {
  const Json json = read_json(path);
  try {
    return plan_file_from_json(json, graph_of);
  } catch (const InputError& error) {
    throw InputError("'" + path.string() + "': " + error.what());
  }
}

}  // namespace regatta
