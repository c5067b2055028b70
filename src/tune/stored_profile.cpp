#include "tune/stored_profile.h"

#include <iostream>

#include "base/error.h"
#include "exec/versions.h"

namespace regatta {

ProfileStore profile_store() { return ProfileStore(machine_mark(library_versions())); }

std::shared_ptr<const Profile> stored_profile() {
  return std::make_shared<Profile>(profile_store().load());
}

void learn(TrainJob& job, const std::vector<Observation>& seen) {
  const auto profile =
      job.profile ? std::make_shared<Profile>(*job.profile) : std::make_shared<Profile>();
  try {
    *profile = profile_store().learn(seen);
  } catch (const InputError& error) {
    std::cerr << error.what() << "; measured for this run alone\n";
    profile->learn(seen);
  }
  job.profile = profile;
}

PricedStep priced_step(const TrainJob& job) {
  return {job.graph, job.recipe, job.plan, job.profile ? job.profile : stored_profile()};
}

}  // namespace regatta
