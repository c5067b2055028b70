#include "app/run_energy.h"

#include <algorithm>

namespace regatta::app {
namespace {

constexpr auto reading_interval = std::chrono::seconds(10);

EnergyOptions options_for(const Plan& plan) {
  EnergyOptions options;
  options.cpus = plan.loaders;
  for (const DeviceGroup* group : groups_of(plan)) {
    if (group->kind == DeviceKind::cpu) options.cpus += group->workers * group->team;
    if (group->kind == DeviceKind::cuda) ++options.gpus;
  }
  return options;
}

int team_of(const Plan& plan) {
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cpu) return group->team;
  return 1;
}

}  // namespace

std::string_view source_of(const GroupJoules& joules) {
  if (!joules.joules) return "unknown";
  return joules.measured ? "measured" : "modelled";
}

std::optional<double> modelled_joules(const PlatformGroup& cores, double seconds,
                                      double busy_core_seconds) {
  if (cores.watts.active <= 0) return std::nullopt;
  return cores.watts.idle * cores.count * seconds +
         (cores.watts.active - cores.watts.idle) * busy_core_seconds;
}

Json to_json(const std::vector<GroupJoules>& groups, double seconds) {
  Json rows = Json::array();
  std::optional<double> sum = groups.empty() ? std::nullopt : std::optional(0.0);
  bool measured = true;
  for (const GroupJoules& each : groups) {
    rows.push_back({{"group", each.group},
                    {"joules", each.joules ? Json(*each.joules) : Json()},
                    {"source", source_of(each)}});
    if (!each.remark.empty()) rows.back()["remark"] = each.remark;
    measured = measured && each.measured;
    sum = sum && each.joules ? std::optional(*sum + *each.joules) : std::nullopt;
  }
  return {{"joules", sum ? Json(*sum) : Json()},
          {"source", source_of(GroupJoules{"", sum, measured, ""})},
          {"seconds", seconds},
          {"groups", rows}};
}

RunEnergy::RunEnergy(const Executor& executor, const PlatformNode& machine)
    : executor_(executor),
      machine_(machine),
      meter_(options_for(executor.plan())),
      begin_(Clock::now()),
      last_(begin_),
      load_(executor.load()) {
  meter_.read(begin_);
}

double RunEnergy::seconds() const { return std::chrono::duration<double>(last_ - begin_).count(); }

void RunEnergy::on_step() {
  if (const Clock::time_point now = Clock::now(); now - last_ > reading_interval) read(now);
}

void RunEnergy::executor_ended(const WorkerLoad& done) {
  load_.kernels -= done.kernels;
  load_.runtime -= done.runtime;
}

void RunEnergy::read(Clock::time_point now) {
  for (const Energy& each : meter_.read(now)) {
    const auto found = std::ranges::find(sums_, each.name, &Energy::name);
    if (found == sums_.end())
      sums_.push_back(each);
    else
      found->joules += each.joules;
  }
  last_ = now;
}

std::vector<GroupJoules> RunEnergy::finish() {
  read(Clock::now());
  std::vector<GroupJoules> groups;
  for (const Energy& each : sums_) {
    if (each.measured) {
      groups.push_back({each.name, each.joules, true, "all that ran on it"});
      continue;
    }
    const auto cores = std::ranges::find(machine_.groups, DeviceKind::cpu, &PlatformGroup::kind);
    // A GPU without an energy counter has unknown joules.
    if (each.name != "cpu" || cores == machine_.groups.end()) {
      groups.push_back({each.name, std::nullopt, false, "no counter can be read"});
      continue;
    }
    const WorkerLoad now = executor_.load();
    const double busy =
        std::chrono::duration<double>(now.kernels + now.runtime - load_.kernels - load_.runtime)
            .count() *
        team_of(executor_.plan());
    groups.push_back({"cpu", modelled_joules(*cores, seconds(), busy), false,
                      cores->watts_measured ? "by the machine's watts, measured before"
                                            : "by assumed watts of a core"});
  }
  return groups;
}

}  // namespace regatta::app
