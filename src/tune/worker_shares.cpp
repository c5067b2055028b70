#include "tune/worker_shares.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "plan/make_plan.h"
#include "plan/shares.h"
#include "tune/balance.h"
#include "tune/stored_profile.h"
#include "tune/trial_budget.h"
#include "tune/tried_shares.h"

namespace regatta {
namespace {

constexpr double slowest = 1000;  // factor of --slow

DeviceGroup& cpu_group_of(Plan& plan, const char* flag) {
  for (PlanNode& node : plan.nodes)
    for (DeviceGroup& group : node.groups)
      if (group.kind == DeviceKind::cpu) return group;
  throw InputError(std::string(flag) + ": the plan has no CPU workers");
}

void use(DeviceGroup& group, std::vector<std::int64_t> chunks) {
  group.chunks = std::move(chunks);
  group.lanes = static_cast<int>(group.chunks.size());
}

double apart_with(TrainJob& job, DeviceGroup& group, const std::vector<std::int64_t>& chunks,
                  std::vector<std::int64_t>& better) {
  use(group, chunks);
  const PricedStep step = priced_step(job);
  better = balanced_chunks(chunks, chunk_seconds(step.blueprint(), step.list(), step.costs()),
                           granule_of(job.graph));
  return apart(step.meetings());
}

// What a chunk costs is not in proportion to its samples, so shares are tried until none does
// better.
std::vector<std::int64_t> balanced(TrainJob& job, DeviceGroup& group,
                                   std::vector<std::int64_t> chunks) {
  std::vector<std::int64_t> best = chunks, next;
  double least = 1;
  constexpr int most_rounds = 6;  // shares may go on to swing by a sample or two
  for (int round = 0; round < most_rounds; ++round) {
    const double found = apart_with(job, group, chunks, next);
    if (found < least) {
      least = found;
      best = chunks;
    }
    if (next == chunks) break;
    chunks = next;
  }
  return best;
}

}  // namespace

double take_gpu_slowness(std::vector<std::string>& slow) {
  constexpr std::string_view gpu = "cuda=";
  double factor = 1;
  for (const std::string& flag : slow) {
    if (!flag.starts_with(gpu)) continue;
    const char* const end = flag.data() + flag.size();
    const auto [stop, error] = std::from_chars(flag.data() + gpu.size(), end, factor);
    if (error != std::errc{} || stop != end || !(factor >= 1 && factor <= slowest))
      throw InputError("--slow " + flag + ": use cuda=FACTOR with a factor from 1 to 1000");
  }
  std::erase_if(slow, [&](const std::string& flag) { return flag.starts_with(gpu); });
  return factor;
}

std::vector<double> slow_workers(const std::vector<std::string>& flags, int workers) {
  if (flags.empty()) return {};
  std::vector<double> slow(static_cast<std::size_t>(workers), 1);
  for (const std::string& flag : flags) {
    const char* const end = flag.data() + flag.size();
    const char* const equals = std::find(flag.data(), end, '=');
    int worker = -1;
    double factor = 0;
    const auto number = std::from_chars(flag.data(), equals, worker);
    const auto times = std::from_chars(equals == end ? end : equals + 1, end, factor);
    if (number.ec != std::errc{} || number.ptr != equals || times.ec != std::errc{} ||
        times.ptr != end || !(factor >= 1 && factor <= slowest))
      throw InputError("--slow " + flag +
                       ": use WORKER=FACTOR or cuda=FACTOR with a factor from 1 to 1000, such as "
                       "1=2");
    if (worker < 0 || worker >= workers)
      throw InputError("--slow " + flag + ": the plan has CPU workers 0 to " +
                       std::to_string(workers - 1) + "; --workers and --shares say how many");
    slow[static_cast<std::size_t>(worker)] = factor;
  }
  return slow;
}

void slow_down(Plan& plan, const std::vector<std::string>& flags) {
  if (flags.empty()) return;
  DeviceGroup& group = cpu_group_of(plan, "--slow");
  group.slow = slow_workers(flags, group.workers);
}

void share_among_workers(TrainJob& job, WorkerShares shares, int workers,
                         const std::vector<std::string>& slow, const ShareTrials& trials) {
  const std::string flag =
      std::string("--shares ") + (shares == WorkerShares::equal ? "equal" : "speed");
  if (groups_of(job.plan).size() != 1)
    throw InputError(flag +
                     " is for CPU workers alone; of several devices tell the samples of each");
  const std::int64_t granule = granule_of(job.graph);
  if (granules_of(job.graph, job.recipe.batch) < workers)
    throw InputError(flag + ": a batch of " + std::to_string(job.recipe.batch) +
                     (granule > 1 ? " in groups of " + std::to_string(granule) : std::string()) +
                     " has no chunk for each of " + std::to_string(workers) + " workers");
  DeviceGroup& group = cpu_group_of(job.plan, "--shares");
  group.workers = workers;
  group.team = 1;
  group.slow = slow_workers(slow, workers);
  job.plan.placement = Placement::hybrid;
  job.plan.order.clear();
  if (shares == WorkerShares::equal)
    return use(group, equal_chunks(job.recipe.batch, workers, granule));
  if (!job.profile) job.profile = stored_profile();
  std::vector<double> speeds(static_cast<std::size_t>(workers), 1);
  for (std::size_t w = 0; w < group.slow.size(); ++w) speeds[w] = 1 / group.slow[w];
  use(group, balanced(job, group, shares_by_speed(speeds, job.recipe.batch, granule)));
  if (workers < 2 || !trials.longest) return;
  // What a chunk costs beside others is known less well than how long a few steps take.
  const Seconds step(priced_step(job).play().step_seconds);
  const Seconds budget = trials.longest(step);
  TrialNote note(budget);
  note.on_turn();
  Balanced found = balance(job, step, budget);
  use(group, std::move(found.chunks));
  if (trials.keep && !found.seen.empty()) learn(job, found.seen);
}

}  // namespace regatta
