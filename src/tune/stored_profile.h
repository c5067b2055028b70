// What is stored of this machine's costs, shared by all runs on it.
#pragma once

#include <memory>
#include <vector>

#include "profile/store.h"
#include "tasks/priced_step.h"
#include "train/job.h"

namespace regatta {

ProfileStore profile_store();

// Empty if nothing was measured here yet.
std::shared_ptr<const Profile> stored_profile();

// Adds what was observed to the job's profile, and to the stored one if that can be written; if
// not, one line on standard error says so.
void learn(TrainJob& job, const std::vector<Observation>& seen);

// The step of the job's plan, with costs by its profile or the stored one.
PricedStep priced_step(const TrainJob& job);

}  // namespace regatta
