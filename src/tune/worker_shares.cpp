#include "tune/worker_shares.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "plan/make_plan.h"
#include "tune/balance.h"
#include "tune/stored_profile.h"
#include "tune/trials.h"

namespace regatta {
namespace {

constexpr double slowest = 1000;  // largest factor of --slow; a larger one is a typing error

constexpr std::string_view gpu_prefix = "cuda=";

DeviceGroup* group_of(Plan& plan, DeviceKind kind) {
  for (PlanNode& node : plan.nodes)
    for (DeviceGroup& group : node.groups)
      if (group.kind == kind) return &group;
  return nullptr;
}

DeviceGroup& cpu_group_of(Plan& plan, const char* flag) {
  if (DeviceGroup* const group = group_of(plan, DeviceKind::cpu)) return *group;
  throw InputError(std::string(flag) + ": the plan has no CPU workers");
}

}  // namespace

double take_gpu_slowness(std::vector<std::string>& slow) {
  double factor = 1;
  for (const std::string& flag : slow) {
    if (!flag.starts_with(gpu_prefix)) continue;
    const char* const end = flag.data() + flag.size();
    const auto [stop, error] = std::from_chars(flag.data() + gpu_prefix.size(), end, factor);
    if (error != std::errc{} || stop != end || !(factor >= 1 && factor <= slowest))
      throw InputError("--slow " + flag + ": use cuda=FACTOR with a factor from 1 to 1000");
  }
  std::erase_if(slow, [&](const std::string& flag) { return flag.starts_with(gpu_prefix); });
  return factor;
}

std::vector<double> slow_workers(const std::vector<std::string>& flags, int workers) {
  if (flags.empty()) return {};
  std::vector<double> slow(static_cast<std::size_t>(workers), 1);
  for (const std::string& flag : flags) {
    if (flag.starts_with(gpu_prefix))
      throw InputError("--slow " + flag + ": no GPU computes in this plan");
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

void slow_down(Plan& plan, std::vector<std::string> flags) {
  if (DeviceGroup* const gpu = group_of(plan, DeviceKind::cuda))
    if (const double factor = take_gpu_slowness(flags); factor > 1) gpu->slow = {factor};
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
  group.chunks = equal_chunks(job.recipe.batch, workers, granule);
  group.lanes = workers;
  if (shares == WorkerShares::equal) return;
  if (!job.profile) job.profile = stored_profile();
  give_chunks(job.plan, balanced_by_costs(job));
  if (workers < 2 || !trials.longest) return;
  // Costs of a chunk beside others are known less well than the time of a few real steps.
  const Seconds step(priced_step(job).play().step_seconds);
  const Seconds budget = trials.longest(step);
  TrialNote note(budget);
  note.on_turn();
  const Balanced found = balanced_by_trials(job, step, budget);
  give_chunks(job.plan, found.chunks);
  if (trials.keep && !found.seen.empty()) learn(job, found.seen);
}

}  // namespace regatta
