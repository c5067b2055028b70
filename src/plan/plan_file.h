// A plan on disk: the recipe it is for, whole, so that it can be simulated or followed without
// anything else; the platform by fingerprint; the plan; and what was predicted of it.
// schemas/plan.schema.json describes it. Version 2 is written, version 1 is read too: its buckets
// repeat the plan's reduction.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/recipe.h"
#include "profile/profile.h"

namespace regatta {

// What is predicted of one group of one node.
struct GroupPrediction {
  std::string node, group;
  double busy_s = 0;  // a step, mean over its workers
  std::int64_t peak_bytes = 0;
  std::optional<double> energy_j = {};  // a step, modelled; none: not known
};

// What a platform's group is for in a plan.
enum class Role {
  compute,  // a share of the batch
  load,     // and transform samples for others
  update,   // add gradients and take the step for others
  rest,
};
std::string_view role_name(Role role);
Role role_named(std::string_view name);  // throws InputError

struct GroupRole {
  std::string node, group;
  Role role = Role::compute;
  std::string reason;  // in words, with the figures it was decided by
};

// What one memory holds, before anything is allocated.
struct MemoryPrediction {
  std::string node;                           // the first of those that need the same
  std::string memory;                         // "node", or the name of a GPU's group
  std::int64_t nodes = 1;                     // that need the same
  std::map<std::string, std::int64_t> kinds;  // bytes by kind of buffer, as people call it

  std::int64_t bytes() const;
};

struct Prediction {
  Estimate step;  // with its 95% interval
  double energy_j = 0;
  std::vector<GroupPrediction> groups;
  std::vector<MemoryPrediction> memories = {};
};

// Parameters that are reduced and updated together, as the plan has it.
struct PlannedBucket {
  std::uint32_t segment = 0;
  std::int64_t bytes = 0;
};

struct PlanFile {
  Recipe recipe;
  std::optional<Json> network = {};  // of a model that is not of the zoo
  std::string platform_name = {};    // for people; the plan has the fingerprint
  Plan plan = {};
  std::vector<PlannedBucket> buckets = {};
  std::optional<Prediction> predicted = {};
  std::vector<GroupRole> roles = {};  // of the platform's groups, also of those without a share
};

// The graph that a recipe trains; rooms above know how to build it.
using GraphOf = std::function<Graph(const Recipe&, const std::optional<Json>& network)>;

Json to_json(const PlanFile& file, const Graph& graph);
// Throws InputError that tells every mistake with its place: what is missing, unknown or of the
// wrong kind, and every broken invariant of the plan.
PlanFile plan_file_from_json(const Json& json, const GraphOf& graph_of);

void write_plan_file(const std::filesystem::path& path, const PlanFile& file, const Graph& graph);
PlanFile read_plan_file(const std::filesystem::path& path, const GraphOf& graph_of);

}  // namespace regatta
