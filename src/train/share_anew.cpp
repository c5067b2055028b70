#include "train/share_anew.h"

#include <algorithm>
#include <cstdio>

#include "plan/rank_plan.h"
#include "train/rank_memory.h"
#include "train/rank_part.h"
#include "train/weights.h"

namespace regatta {
namespace {

std::vector<std::int64_t> shares_of(const Plan& plan) {
  std::vector<std::int64_t> shares;
  for (const PlanNode& node : plan.nodes) shares.push_back(share_of(node));
  return shares;
}

std::vector<std::int64_t> fixed_chunks(const Plan& plan) {
  std::vector<std::int64_t> chunks;
  if (plan.deterministic)
    for (const Chunk& chunk : chunks_of(plan)) chunks.push_back(chunk.capacity);
  return chunks;
}

}  // namespace

NewShares::NewShares(Ranks& ranks, TrainJob& job, std::optional<Executor>& executor,
                     RankRequest request, std::function<void(const std::string&)> say)
    : ranks_(ranks),
      job_(job),
      executor_(executor),
      request_(std::move(request)),
      say_(std::move(say)),
      watch_(shares_of(job.whole_plan()), granule_of(job.graph), fixed_chunks(job.whole_plan())) {}

bool NewShares::wanted(const std::vector<double>& computed_s) {
  return !over_ && watch_.note(computed_s);
}

std::string NewShares::plan_text() const {
  const Plan& before = job_.whole_plan();
  std::vector<RankResources> resources;
  for (const PlanNode& node : before.nodes) {
    const DeviceGroup& group = node.groups.front();
    resources.push_back({node.name, group.workers * group.team, group.layout});
  }
  Plan plan = plan_over_ranks(job_.graph, job_.recipe, options_of(before, request_), resources,
                              watch_.better(), before.update);
  keep_the_rest(plan, before);
  require_valid(plan, job_.graph, job_.recipe.batch);
  return to_json(plan, job_.graph).dump();
}

std::string NewShares::line(std::int64_t step, const std::vector<std::int64_t>& shares) const {
  const std::vector<double> took = watch_.typical();
  std::string from_to, why;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    const std::string& name = job_.whole_plan().nodes[r].name;
    char time[40];
    std::snprintf(time, sizeof time, "%.3g ms", 1e3 * took[r]);
    from_to += (r ? ", " : "") + name + " " + std::to_string(watch_.shares()[r]) + " -> " +
               std::to_string(shares[r]);
    why += (r ? ", " : "") + name + " " + time;
  }
  return "after step " + std::to_string(step) + " shares were planned anew: " + from_to +
         " samples; for " + std::to_string(watch_.patience()) + " steps they computed for " + why;
}

bool NewShares::share_anew(std::int64_t step) {
  std::string text, failure;
  if (ranks_.first()) try {
      text = plan_text();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  // All ranks learn of a failure on the first rank, so that all give up together.
  failure = ranks_.from_first(failure);
  Plan whole;
  if (failure.empty()) {
    whole = plan_from_json(Json::parse(ranks_.from_first(text)), job_.graph);
    TrainJob next = job_;
    take_part(ranks_, next, whole, job_.ranks.place.sites);
    // The executor that goes makes room for the one that comes.
    failure = memory_shortage(ranks_, next, next.plan,
                              ranks_.first() ? Purpose::saved_training : Purpose::training,
                              executor_->buffer_bytes() + executor_->workspace_bytes());
    for (const std::string& each : ranks_.gather(failure))
      if (failure.empty()) failure = each;
  }
  if (!failure.empty()) {
    over_ = true;
    if (ranks_.first()) say_("shares stay as they are: " + failure);
    return false;
  }
  const std::vector<std::int64_t> shares = shares_of(whole);
  if (ranks_.first()) {
    say_(line(step, shares));
    watch_.use(shares);
  }
  try {
    const TensorFile weights = weights_of(*executor_), remembered = optimizer_state_of(*executor_);
    const std::vector<double> slow = job_.plan.nodes.front().groups.front().slow;
    executor_.reset();
    take_part(ranks_, job_, std::move(whole), job_.ranks.place.sites);
    keep_slow(job_.plan, slow);
    executor_.emplace(job_.graph, job_.plan, job_.exec_options(true));
    set_weights(*executor_, weights, "the weights before");
    set_optimizer_state(*executor_, remembered, "the optimizer state before");
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ranks_.agree(failure);
  return true;
}

}  // namespace regatta
