#include "tasks/meetings.h"

#include <algorithm>
#include <map>
#include <optional>

#include "tasks/dependencies.h"
#include "tasks/placement.h"

namespace regatta {
namespace {

bool combines(const Task& task) {
  return std::ranges::any_of(task.actions, [](const Action& action) {
    return action.phase == Phase::combine || action.phase == Phase::combine_gradient;
  });
}

// The worker of each chunk, and how slow it is: by --slow, or as one of unequal cores.
class ChunkWorkers {
 public:
  explicit ChunkWorkers(const Plan& plan)
      : powers_(powers_of(plan)), contention_(contention_of(plan)) {
    int first = 0;
    for (const DeviceGroup* group : groups_of(plan)) {
      const bool cpu = group->kind == DeviceKind::cpu;
      for (std::size_t i = 0; i < group->chunks.size(); ++i)
        worker_.push_back(first + (cpu ? worker_of_chunk(*group, i) : 0));
      first += cpu ? group->workers : 1;
    }
  }
  int of(ChunkId chunk) const { return worker_[chunk.value]; }
  double slowness(ChunkId chunk) const { return powers_[static_cast<std::size_t>(of(chunk))].slow; }
  double contention(ChunkId chunk) const {
    return contention_[static_cast<std::size_t>(of(chunk))];
  }

 private:
  std::vector<int> worker_;
  std::vector<WorkerPower> powers_;
  std::vector<double> contention_;
};

// By task; of those that compute on a chunk.
std::vector<double> seconds_of(const Blueprint& blueprint, const TaskList& list,
                               const TaskCosts& costs, const ChunkWorkers& chunk_workers) {
  std::vector<double> seconds(list.tasks.size(), 0);
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    const std::optional<ChunkId> chunk = computed_chunk(task);
    if (!chunk) continue;
    const DeviceGroup& group = blueprint.group(task.group);
    const int busy = std::min(group.workers, static_cast<int>(group.chunks.size()));
    const double alone = costs.of(task, 1).seconds, among_all = costs.of(task, busy).seconds;
    seconds[t] = chunk_workers.slowness(*chunk) *
                 (alone + chunk_workers.contention(*chunk) * (among_all - alone));
  }
  return seconds;
}

}  // namespace

std::vector<Meeting> meetings(const Blueprint& blueprint, const TaskList& list,
                              const TaskCosts& costs) {
  return meetings(blueprint, list,
                  seconds_of(blueprint, list, costs, ChunkWorkers(blueprint.plan)));
}

std::vector<Meeting> meetings(const Blueprint& blueprint, const TaskList& list,
                              std::span<const double> seconds) {
  const ChunkWorkers chunk_workers(blueprint.plan);
  std::vector<std::int64_t> latest_meeting(list.tasks.size(), -1);  // that a task waits for
  for (const auto& [task, on] : Dependencies().follow(list, 0, 0))
    if (combines(list.tasks[static_cast<std::size_t>(on)])) {
      std::int64_t& latest = latest_meeting[static_cast<std::size_t>(task)];
      latest = std::max(latest, on);
    }
  struct Way {
    std::size_t met = 0;     // meetings it has behind it
    std::int64_t task = -1;  // the one before
  };
  std::vector<Way> so_far(blueprint.chunks.size());
  std::vector<std::map<int, double>> ways;  // by meeting, by worker
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    const std::optional<ChunkId> chunk = computed_chunk(task);
    if (!chunk || only_weight_gradients(task)) continue;
    Way& way = so_far[chunk->value];
    // A backward reads again what chunks agreed on in the forward: no meeting of its own.
    if (latest_meeting[t] > way.task) ++way.met;
    way.task = static_cast<std::int64_t>(t);
    if (ways.size() <= way.met) ways.resize(way.met + 1);
    ways[way.met][chunk_workers.of(*chunk)] += seconds[t];
  }
  std::vector<Meeting> found;
  for (const std::map<int, double>& way : ways) {
    if (way.empty()) continue;
    const auto [first, last] =
        std::ranges::minmax_element(way, {}, [](const auto& each) { return each.second; });
    found.push_back({first->second, last->second});
  }
  return found;
}

double apart(const std::vector<Meeting>& meetings) {
  double waited = 0, all = 0;
  for (const Meeting& meeting : meetings) {
    waited += meeting.last - meeting.first;
    all += meeting.last;
  }
  return all > 0 ? waited / all : 0;
}

std::vector<double> chunk_seconds(const Blueprint& blueprint, const TaskList& list,
                                  std::span<const double> seconds) {
  std::vector<double> sums(blueprint.chunks.size(), 0);
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    if (const auto chunk = computed_chunk(list.tasks[t])) sums[chunk->value] += seconds[t];
  return sums;
}

std::vector<double> chunk_seconds(const Blueprint& blueprint, const TaskList& list,
                                  const TaskCosts& costs) {
  return chunk_seconds(blueprint, list,
                       seconds_of(blueprint, list, costs, ChunkWorkers(blueprint.plan)));
}

}  // namespace regatta
