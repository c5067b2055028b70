// What every rank of a platform should do, as flags of simulate say it and run.json keeps it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "sim/fleet_plan.h"

namespace regatta::app {

struct FleetRequest {
  std::string update = "ring", shares = "equal", reduction = "slots", server_sends = "bucket";
  std::optional<std::string> chunks, segments;
  std::int64_t batch = 32;               // of each rank
  int workers = 0, team = 0, ranks = 0;  // 0: as many as there are
  double images_per_s = 0;               // of one rank alone, if measured; 0: as the platform says
  int cpus = 0;                          // of this machine, if it is the platform
};
Json to_json(const FleetRequest& request);
FleetRequest request_from_json(const Json& json);  // throws what Json throws

// What is to be simulated: a network and its recipe, with or without a plan.
struct Subject {
  Graph graph;
  Recipe recipe;
  std::optional<Plan> plan = {};
  std::optional<Json> network = {};
};

// If `subject` has a plan, it is followed and `request` is ignored. `folder` holds the platform's
// profiles. Throws InputError.
sim::PreparedFleet fleet_for(const Subject& subject, const Platform& platform,
                             const std::filesystem::path& folder, const FleetRequest& request);

}  // namespace regatta::app
