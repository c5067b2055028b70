#include "app/forecast.h"

#include "exec/versions.h"
#include "platform/machine.h"
#include "profile/store.h"
#include "tasks/placement.h"

namespace regatta::app {

std::shared_ptr<const Profile> profile_here() {
  return std::make_shared<Profile>(ProfileStore(machine_mark(library_versions())).load());
}

int cpus_of(const Plan& plan) {
  int cpus = plan.loaders;
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cpu) cpus += group->workers * group->team;
  return cpus;
}

Forecast::Forecast(const TrainJob& job)
    : blueprint_(make_blueprint(job.graph, job.plan, numbers_of(job.recipe), true)),
      list_(lower(blueprint_, Job::train)),
      costs_(std::make_unique<ProfileCosts>(blueprint_, job.profile ? job.profile : profile_here(),
                                            job.recipe.data)) {
  require_order(blueprint_, list_);
}

Played Forecast::play() const { return regatta::play(blueprint_, list_, *costs_); }

std::vector<std::vector<std::uint32_t>> Forecast::order() const {
  std::vector<RanAt> tasks;
  for (const PlayedTask& task : play().tasks) tasks.push_back({task.worker, task.start});
  return order_of(tasks, workers_of(blueprint_.plan).size());
}

}  // namespace regatta::app
