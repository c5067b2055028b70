#include "tune/worker_shares.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "plan/make_plan.h"
#include "tune/balance.h"
#include "tune/stored_profile.h"

namespace regatta {
namespace {

constexpr std::string_view gpu_prefix = "cuda=";

// All of `text` as a number.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

// What follows the equals sign of "1=2"; nothing if that is no factor. A larger one than 1000 is a
// typing error.
std::optional<double> factor_in(std::string_view flag) {
  const std::size_t equals = flag.find('=');
  if (equals == flag.npos) return std::nullopt;
  const auto factor = number_in<double>(flag.substr(equals + 1));
  return factor && *factor >= 1 && *factor <= 1000 ? factor : std::nullopt;
}

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
  double slowness = 1;
  std::erase_if(slow, [&](const std::string& flag) {
    if (!flag.starts_with(gpu_prefix)) return false;
    const std::optional<double> factor = factor_in(flag);
    if (!factor)
      throw InputError("--slow " + flag + ": use cuda=FACTOR with a factor from 1 to 1000");
    slowness = *factor;
    return true;
  });
  return slowness;
}

std::vector<double> slow_workers(const std::vector<std::string>& flags, int workers) {
  if (flags.empty()) return {};
  std::vector<double> slow(static_cast<std::size_t>(workers), 1);
  for (const std::string& flag : flags) {
    if (flag.starts_with(gpu_prefix))
      throw InputError("--slow " + flag + ": no GPU computes in this plan");
    const auto worker = number_in<int>(std::string_view(flag).substr(0, flag.find('=')));
    const std::optional<double> factor = factor_in(flag);
    if (!worker || !factor)
      throw InputError("--slow " + flag +
                       ": use WORKER=FACTOR or cuda=FACTOR with a factor from 1 to 1000, such as "
                       "1=2");
    if (*worker < 0 || *worker >= workers)
      throw InputError("--slow " + flag + ": the plan has CPU workers 0 to " +
                       std::to_string(workers - 1) + "; --workers and --shares say how many");
    slow[static_cast<std::size_t>(*worker)] = *factor;
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
                         const std::vector<std::string>& slow) {
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
  balance_by_costs(job);
}

}  // namespace regatta
