// Workers made unequal, for experiments on a machine whose cores are alike, and shares of the batch
// that make up for it.
#pragma once

#include <string>
#include <vector>

#include "train/job.h"

namespace regatta {

// From "1=2" and such, by CPU worker, how many times as long its tasks take; empty if none is
// given. Throws InputError.
std::vector<double> slow_workers(const std::vector<std::string>& slow, int workers);

// Takes "cuda=2" and such out of `slow`: how many times as long a GPU's tasks take; 1 without it.
// Throws InputError.
double take_gpu_slowness(std::vector<std::string>& slow);

// Writes both into the plan. Throws InputError if it has no such workers, or no GPU.
void slow_down(Plan& plan, std::vector<std::string> slow);

enum class WorkerShares {
  equal,  // chunks as equal as whole samples allow
  speed,  // however slow each worker is, all arrive together where they meet
};

// A chunk for each CPU worker: equal, or by the job's costs. Throws InputError.
void share_among_workers(TrainJob& job, WorkerShares shares, int workers,
                         const std::vector<std::string>& slow);

}  // namespace regatta
