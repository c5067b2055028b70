#include "app/fleet_request.h"

#include "app/command.h"
#include "app/node_plan.h"
#include "app/profiles.h"
#include "base/error.h"
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
          {"backward", or_null(request.backward)},
          {"devices", request.devices},
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
                                  {"server_sends", &request.server_sends},
                                  {"devices", &request.devices}})
    *text = json.at(key).get<std::string>();
  for (const auto& [key, text] : {std::pair{"chunks", &request.chunks},
                                  {"segments", &request.segments},
                                  {"backward", &request.backward}})
    if (const auto found = json.find(key); found != json.end() && !found->is_null())
      *text = found->get<std::string>();
  for (const auto& [key, number] : {std::pair{"workers", &request.workers},
                                    {"team", &request.team},
                                    {"ranks", &request.ranks},
                                    {"cpus", &request.cpus}})
    *number = json.at(key).get<int>();
  request.images_per_s = json.at("images_per_s");
  return request;
}

namespace {

NodeOptions options_of(const FleetRequest& request) {
  NodeOptions options;
  options.shares = request.shares;
  options.devices = platform_devices_named(request.devices);
  options.ranks = request.ranks;
  options.workers = request.workers;
  options.update = node_update_named(request.update);
  options.plan.layout = default_cpu_layout();
  options.plan.cpus = request.cpus;
  options.plan.reduction = reduction_named(request.reduction);
  options.plan.segments = request.segments;
  if (request.backward) options.plan.backward = backward_named(*request.backward);
  if (request.team > 0) options.plan.team = request.team;
  if (request.chunks) options.plan.chunks = parse_sizes("--chunks", *request.chunks);
  return options;
}

// With every device as fast as one that computes so many images a second alone.
Platform scaled(Platform platform, const Graph& graph, double images_per_s) {
  if (images_per_s <= 0) return platform;
  const double flops = images_per_s * step_flops(graph);
  for (PlatformNode& node : platform.nodes)
    for (PlatformGroup& group : node.groups) {
      group.costs.profile.clear();
      group.costs.flops = flops / (group.kind == DeviceKind::cpu ? group.count : 1);
    }
  return platform;
}

}  // namespace

std::optional<Devices> platform_devices_named(const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (text == "cpu") return Devices::cpu;
  if (text == "cuda") return Devices::cuda;
  if (text == "cpu,cuda" || text == "cuda,cpu") return Devices::both;
  throw InputError("--devices " + text + ": use auto, cpu, cuda or cpu,cuda");
}

std::int64_t batch_for(const Subject& subject, const Platform& platform,
                       const FleetRequest& request) {
  if (subject.recipe.batch > 0) return subject.recipe.batch;
  return samples_of_a_group * groups_at_most(platform, options_of(request));
}

Plan plan_for(const Subject& subject, const Platform& platform, const std::filesystem::path& folder,
              const FleetRequest& request) {
  const Platform there = scaled(platform, subject.graph, request.images_per_s);
  Plan plan = plan_over_nodes(subject.graph, subject.recipe, there, profiles_for(there, folder),
                              options_of(request));
  require_valid(plan, subject.graph, subject.recipe.batch);
  return plan;
}

sim::PreparedFleet fleet_for(const Subject& subject, const Platform& platform,
                             const std::filesystem::path& folder, const FleetRequest& request) {
  const Platform there = scaled(platform, subject.graph, request.images_per_s);
  sim::PreparedFleet fleet(subject.graph, subject.recipe, there, profiles_for(there, folder));
  fleet.follow(subject.plan ? *subject.plan : plan_for(subject, platform, folder, request));
  if (request.server_sends == "step") fleet.server_sends_last();
  return fleet;
}

}  // namespace regatta::app
