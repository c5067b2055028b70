#include "tickets/schedule.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace regatta::tickets {
namespace {

std::vector<std::vector<std::size_t>> followers_of(const std::vector<JobWork>& jobs) {
  std::vector<std::vector<std::size_t>> followers(jobs.size());
  for (std::size_t job = 0; job < jobs.size(); ++job)
    for (const std::size_t before : jobs[job].after) followers[before].push_back(job);
  return followers;
}

// A topological order: every job comes after all jobs that it waits for.
std::vector<std::size_t> in_order(const std::vector<JobWork>& jobs,
                                  const std::vector<std::vector<std::size_t>>& followers) {
  std::vector<std::size_t> waits(jobs.size()), order;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    waits[job] = jobs[job].after.size();
    if (waits[job] == 0) order.push_back(job);
  }
  for (std::size_t at = 0; at < order.size(); ++at)
    for (const std::size_t next : followers[order[at]])
      if (--waits[next] == 0) order.push_back(next);
  if (order.size() != jobs.size()) throw Error("jobs wait for each other in a circle");
  return order;
}

std::vector<PlacedJob> place(const std::vector<JobWork>& jobs, const std::vector<Seconds>& ready_at,
                             std::vector<WorkerSpeed> workers) {
  const std::vector<double> chains = longest_chains(jobs);
  // A job's chain is longer than those of its followers, so the order of falling chains respects
  // dependencies. Jobs without work have chains as long as their followers'; the stable sort leaves
  // these in their topological order.
  std::vector<std::size_t> order = in_order(jobs, followers_of(jobs));
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t job) { return chains[job]; });
  std::vector<Seconds> ready = ready_at;
  std::vector<PlacedJob> placed;
  const auto followers = followers_of(jobs);
  for (const std::size_t job : order) {
    PlacedJob best{job, 0, {}, Seconds::max()};
    for (std::size_t worker = 0; worker < workers.size(); ++worker) {
      const Seconds start = std::max(ready[job], workers[worker].free_at);
      const Seconds end = start + Seconds(jobs[job].work / workers[worker].speed);
      if (end < best.end) best = {job, worker, start, end};
    }
    workers[best.worker].free_at = best.end;
    for (const std::size_t next : followers[job]) ready[next] = std::max(ready[next], best.end);
    placed.push_back(best);
  }
  return placed;
}

}  // namespace

std::vector<double> longest_chains(const std::vector<JobWork>& jobs) {
  const auto followers = followers_of(jobs);
  const std::vector<std::size_t> order = in_order(jobs, followers);
  std::vector<double> chains(jobs.size());
  for (auto job = order.rbegin(); job != order.rend(); ++job) {
    double longest = 0;
    for (const std::size_t next : followers[*job]) longest = std::max(longest, chains[next]);
    chains[*job] = jobs[*job].work + longest;
  }
  return chains;
}

std::vector<PlacedJob> schedule(const std::vector<JobWork>& jobs,
                                const std::vector<WorkerSpeed>& workers) {
  return place(jobs, std::vector<Seconds>(jobs.size()), workers);
}

Seconds end_of(const std::vector<PlacedJob>& placed) {
  Seconds end{0};
  for (const PlacedJob& each : placed) end = std::max(end, each.end);
  return end;
}

Seconds ideal_time(const std::vector<JobWork>& jobs, const std::vector<WorkerSpeed>& workers) {
  double work = 0, speed = 0;
  for (const JobWork& job : jobs) work += job.work;
  for (const WorkerSpeed& worker : workers) speed += worker.speed;
  return Seconds(work / speed);
}

std::optional<std::size_t> next_job(const std::vector<OpenJob>& jobs,
                                    const std::vector<WorkerSpeed>& workers, std::size_t worker) {
  std::vector<JobWork> works;
  std::vector<Seconds> ready;
  for (const OpenJob& open : jobs) {
    works.push_back(open.job);
    ready.push_back(open.ready_at);
  }
  for (const PlacedJob& placed : place(works, ready, workers))
    if (placed.worker == worker && jobs[placed.job].job.after.empty() &&
        jobs[placed.job].ready_at <= Seconds{0})
      return placed.job;
  return std::nullopt;
}

}  // namespace regatta::tickets
