// Whole jobs on unequal workers: who does what, and when all is done. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace regatta::tickets {

// A job cannot be cut: one worker does all of it.
struct JobWork {
  double work = 0;                 // seconds on a worker of speed 1, or images
  std::vector<std::size_t> after;  // jobs that must be done before
};

struct WorkerSpeed {
  double speed = 1;    // work done in a second
  Seconds free_at{0};  // when it has ended what it does now
};

struct PlacedJob {
  std::size_t job = 0, worker = 0;
  Seconds start{0}, end{0};
};

// By job: its work and that of the longest chain of jobs that wait for it. Throws Error if jobs
// wait for each other in a circle.
std::vector<double> longest_chains(const std::vector<JobWork>& jobs);

// Jobs with the longest chains first, each on the worker that would end it first; of equal ones,
// the one that comes first. (HEFT without insertion: Topcuoglu, Hariri and Wu, 2002.) In the order
// in which jobs were placed. At least one worker is needed.
std::vector<PlacedJob> schedule(const std::vector<JobWork>& jobs,
                                const std::vector<WorkerSpeed>& workers);

// When the last one ends.
Seconds end_of(const std::vector<PlacedJob>& placed);

// The heterogeneous ideal: all work, cut at will, over all speeds together.
Seconds ideal_time(const std::vector<JobWork>& jobs, const std::vector<WorkerSpeed>& workers);

// What `worker`, which is free, begins now: of the jobs whose predecessors are done, the first one
// that the schedule above gives it at once. None: a faster worker that is still busy would end
// every job that is left earlier. `jobs` holds those that are not done and not under way; a job
// waits for those among them and until `ready_at` of the ones under way.
struct OpenJob {
  JobWork job;
  Seconds ready_at{0};  // when the last of its predecessors that are under way will be done
};
std::optional<std::size_t> next_job(const std::vector<OpenJob>& jobs,
                                    const std::vector<WorkerSpeed>& workers, std::size_t worker);

}  // namespace regatta::tickets
