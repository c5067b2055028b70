// What every rank of a platform should do, as flags of simulate say it and run.json keeps it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/node_places.h"
#include "base/json.h"
#include "sim/fleet_plan.h"

namespace regatta::app {

struct FleetRequest {
  std::string update = "ring", shares = "equal", reduction = "slots", server_sends = "bucket";
  std::string devices = "auto";
  std::optional<std::string> chunks, segments, backward;
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

inline constexpr std::int64_t samples_of_a_group = 32;  // of a batch that nobody gave

// What `simulate` and `plan` take for --devices. Throws InputError.
std::optional<Devices> platform_devices_named(const std::string& text);

// Samples of a step: the subject's batch, or samples_of_a_group for each group if that is 0.
std::int64_t batch_for(const Subject& subject, const Platform& platform,
                       const FleetRequest& request);

// The plan that `regatta plan --platform` would make of it. `folder` holds the platform's profiles.
// Throws InputError.
Plan plan_for(const Subject& subject, const Platform& platform, const std::filesystem::path& folder,
              const FleetRequest& request);

// The fleet that runs the subject's plan, or else the request's. Throws InputError.
sim::PreparedFleet fleet_for(const Subject& subject, const Platform& platform,
                             const std::filesystem::path& folder, const FleetRequest& request);

}  // namespace regatta::app
