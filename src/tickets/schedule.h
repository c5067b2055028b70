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

// For each job its own work plus the work of the longest chain of jobs that wait for it. Throws
// Error if jobs wait for each other in a circle.
std::vector<double> longest_chains(const std::vector<JobWork>& jobs);

// Places jobs with the longest chains first, each on the worker that would end it first; of equal
// jobs or workers, the one with the lower index. (HEFT without insertion: Topcuoglu, Hariri and Wu,
// 2002.) Returns jobs in the order in which they were placed. At least one worker is needed.
std::vector<PlacedJob> schedule(const std::vector<JobWork>& jobs,
                                const std::vector<WorkerSpeed>& workers);

// When the last of the placed jobs ends.
Seconds end_of(const std::vector<PlacedJob>& placed);

// The heterogeneous ideal: all work, cut at will, over all speeds together.
Seconds ideal_time(const std::vector<JobWork>& jobs, const std::vector<WorkerSpeed>& workers);

// A job that is neither done nor under way.
struct OpenJob {
  JobWork job;          // `after`: which of the other open jobs it waits for
  Seconds ready_at{0};  // when the last of its predecessors that are under way will be done
};
// The job that `worker`, which is free, begins now: of the jobs whose predecessors are all done,
// the first one that schedule() places on it. Nothing if a faster worker that is still busy would
// end every open job earlier.
std::optional<std::size_t> next_job(const std::vector<OpenJob>& jobs,
                                    const std::vector<WorkerSpeed>& workers, std::size_t worker);

}  // namespace regatta::tickets
