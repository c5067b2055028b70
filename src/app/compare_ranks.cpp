#include "app/compare_ranks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "app/rank_platform.h"
#include "base/error.h"
#include "sim/fleet_plan.h"
#include "tasks/play.h"
#include "tasks/split_updates.h"
#include "tasks/task_label.h"

namespace regatta::app {
namespace {

// The label that a record gives to the tasks of this exchange or meeting of ranks.
std::string meeting_name(const Action& action) {
  Task task;
  task.actions.push_back(action);
  const TaskLabel label = label_of(task);
  return trace::label({.job = "train",
                       .phases = label.phases,
                       .group = {},
                       .segment = label.segment,
                       .part = label.part,
                       .chunk = -1,
                       .bucket = label.bucket});
}

// For each exchange, by its name: seconds from the begin of the first forward task to the end of
// the last task that adds to the bucket's gradient, or to the sums of the batch norm.
std::map<std::string, double> planned_arrivals(const Blueprint& blueprint, const TaskList& list,
                                               const std::vector<PlayedTask>& played) {
  std::map<std::string, double> arrivals;
  double begin = std::numeric_limits<double>::infinity();
  std::set<BucketId> updated;
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const auto arrive = [&](const Action& meeting) {
      double& last = arrivals.try_emplace(meeting_name(meeting), 0).first->second;
      last = std::max(last, played[t].end);
    };
    for (const BucketId bucket : awaited_buckets(list.tasks[t])) updated.insert(bucket);
    for (const Action& action : list.tasks[t].actions) {
      if (action.phase == Phase::forward) begin = std::min(begin, played[t].start);
      if (action.phase == Phase::forward || action.phase == Phase::backward)
        arrive({.phase = action.phase == Phase::forward ? Phase::exchange_sums
                                                        : Phase::exchange_gradient_sums,
                .segment = action.segment,
                .part = action.part});
    }
    for (const Access& access : list.tasks[t].accesses) {
      const Buffer& buffer = list.buffers[access.buffer];
      const BucketId bucket{buffer.first};
      if (buffer.kind != BufferKind::gradient || updated.contains(bucket)) continue;
      arrive({.phase = Phase::exchange,
              .segment = blueprint.buckets[bucket.value].segment,
              .bucket = bucket});
    }
  }
  for (auto& [name, seconds] : arrivals) seconds -= begin;
  return arrivals;
}

// Predicts each rank by itself, and each exchange as if no other messages travelled.
Planned planned_of_ranks(const sim::Fleet& fleet, const RankNetwork& network) {
  Planned planned;
  planned.step_s = 0;
  planned.meetings.emplace();
  const std::vector<int> sites = sites_of(network.machines, network.links);
  std::map<std::string, RankMeeting> meetings;
  for (std::size_t r = 0; r < fleet.ranks.size(); ++r) {
    const sim::RankKind& kind = fleet.kinds[static_cast<std::size_t>(fleet.ranks[r].kind)];
    const std::string node =
        fleet.platform.nodes[static_cast<std::size_t>(fleet.ranks[r].node)].name;
    const TaskList list = split_updates(*kind.list);
    const Played played = play(*kind.blueprint, list, *kind.costs);
    planned.step_s = std::max(*planned.step_s, played.step_seconds);
    for (const PlayedShares& worker : played.workers) planned.busy.push_back(worker.busy);
    for (const auto& [name, seconds] : planned_arrivals(*kind.blueprint, list, played.tasks))
      meetings[name].arrivals[node] = seconds;
  }
  double all_bytes = 0;
  const Blueprint& blueprint = *fleet.kinds.front().blueprint;
  for (std::uint32_t b = 0; b < blueprint.buckets.size(); ++b) {
    const auto bytes = static_cast<double>(blueprint.wire_bytes(blueprint.buckets[b]));
    const std::string name = meeting_name(
        {.phase = Phase::exchange, .segment = blueprint.buckets[b].segment, .bucket = BucketId{b}});
    RankMeeting& meeting = meetings[name];
    meeting.gradients = true;
    meeting.messages = exchange_seconds(fleet.update, sites, network.links, bytes);
    planned.meetings->exchange_s += meeting.messages;
    planned.message_bounds[name] = exchange_bound(sites, network.links, bytes);
    all_bytes += bytes;
  }
  planned.exchange_bound = exchange_bound(sites, network.links, all_bytes);
  for (auto& [name, meeting] : meetings) {
    meeting.name = name;
    planned.meetings->all.push_back(std::move(meeting));
  }
  return planned;
}

}  // namespace

Prediction predict_ranks(const TrainJob& job, const std::filesystem::path& run,
                         const trace::Record& measured, std::int64_t steps, std::uint64_t seed) {
  if (job.recipe.accumulate > 1)
    throw InputError("steps of several batches (--accumulate) cannot be simulated yet");
  const RankNetwork network = network_in(measured);
  sim::PreparedFleet fleet(job.graph, job.recipe, platform_of_ranks(job.plan, network),
                           network.profiles_in(run, job.profile));
  fleet.follow(job.plan);
  return {sim::simulate(fleet.fleet(), {.steps = steps,
                                        .seed = seed,
                                        .crowded = fleet.threads() >= network.cpus.front(),
                                        .record_exchanges = true}),
          planned_of_ranks(fleet.fleet(), network),
          network.all_have_profiles()
              ? "planned: each rank by itself, with the costs that it had measured"
              : "planned: each rank by itself; ranks that had measured nothing have the "
                "costs of this machine's profile"};
}

}  // namespace regatta::app
