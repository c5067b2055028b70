#include "app/fleet_request.h"

#include "app/command.h"
#include "app/profiles.h"
#include "train/job.h"

namespace regatta::app {

Json to_json(const FleetRequest& request) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  return {{"update", request.update},
          {"shares", request.shares},
          {"reduction", request.reduction},
          {"server_sends", request.server_sends},
          {"chunks", or_null(request.chunks)},
          {"segments", or_null(request.segments)},
          {"batch", request.batch},
          {"workers", request.workers},
          {"team", request.team},
          {"ranks", request.ranks},
          {"images_per_s", request.images_per_s},
          {"cpus", request.cpus}};
}

FleetRequest request_from_json(const Json& json) {
  FleetRequest request;
  for (const auto& [key, text] : {std::pair{"update", &request.update},
                                  {"shares", &request.shares},
                                  {"reduction", &request.reduction},
                                  {"server_sends", &request.server_sends}})
    *text = json.at(key).get<std::string>();
  for (const auto& [key, text] :
       {std::pair{"chunks", &request.chunks}, {"segments", &request.segments}})
    if (const Json& found = json.at(key); !found.is_null()) *text = found.get<std::string>();
  for (const auto& [key, number] : {std::pair{"workers", &request.workers},
                                    {"team", &request.team},
                                    {"ranks", &request.ranks},
                                    {"cpus", &request.cpus}})
    *number = json.at(key).get<int>();
  request.batch = json.at("batch");
  request.images_per_s = json.at("images_per_s");
  return request;
}

sim::PreparedFleet fleet_for(const Subject& subject, const Platform& platform,
                             const std::filesystem::path& folder, const FleetRequest& request) {
  sim::PreparedFleet fleet(subject.graph, subject.recipe, platform, profiles_for(platform, folder));
  if (subject.plan) {
    fleet.follow(*subject.plan);
    return fleet;
  }
  sim::PreparedFleet::Spread spread;
  spread.batch = request.batch;
  spread.by_speed = request.shares == "speed";
  spread.ranks = request.ranks;
  spread.update = node_update_named(request.update);
  spread.server_sends_last = request.server_sends == "step";
  spread.images_per_s = request.images_per_s;
  spread.workers = request.workers;
  spread.team = request.team;
  spread.plan.layout = default_cpu_layout();
  if (request.cpus > 0) spread.plan.cpus = request.cpus;
  spread.plan.reduction = reduction_named(request.reduction);
  spread.plan.segments = request.segments;
  const bool several = request.ranks != 1 && fleet.room() > 1;
  if (!request.segments && several) spread.plan.segments = "block";
  if (request.chunks) spread.plan.chunks = parse_sizes("--chunks", *request.chunks);
  fleet.spread(spread);
  return fleet;
}

}  // namespace regatta::app
