#include "tasks/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tasks/dependencies.h"

namespace regatta {
namespace {

constexpr std::int64_t most_in_flight = 64;  // most steps in flight, see faults() of a plan

// Whether a task only loads. Such a task waits for nothing but a free buffer, so it may fill gaps;
// with a turn of its own it would delay the tasks after it.
bool fills_gaps(const Task& task) {
  return std::ranges::all_of(task.actions,
                             [](const Action& action) { return action.phase == Phase::load; });
}

bool ordered(const Plan& plan, const TaskList& list) {
  return plan.placement == Placement::fixed && list.job == ListKind::train;
}

std::string named(const TaskList& list, std::size_t t) {
  std::string text = "task " + std::to_string(t) + " (";
  const Task& task = list.tasks[t];
  for (std::size_t i = 0; i < std::min<std::size_t>(task.actions.size(), 3); ++i)
    text += (i ? "+" : "") + std::string(phase_name(task.actions[i].phase));
  return text + ")";
}

// A circle of tasks that wait for each other: "task 5 (backward) waits for task 3 (forward), ...".
std::string circle(const TaskList& list, const std::vector<std::vector<std::uint32_t>>& waits_for,
                   const std::vector<bool>& done) {
  std::size_t at = 0;
  while (done[at]) ++at;
  std::vector<std::size_t> path;
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    for (const std::uint32_t on : waits_for[at])
      if (!done[on]) {
        at = on;
        break;
      }
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  std::string text = "its order can never be followed: ";
  for (std::size_t i = 0; i < std::min<std::size_t>(path.size(), 6); ++i)
    text += named(list, path[i]) + " waits for ";
  return text + (path.size() > 6 ? "others, and these for " : "") + named(list, path.front());
}

}  // namespace

std::optional<ChunkId> computed_chunk(const Task& task) {
  for (const Action& action : task.actions)
    if (runs_part(action.phase)) return action.chunk;
  return std::nullopt;
}

std::vector<FixedPlace> fixed_places(const Blueprint& blueprint, const TaskList& list) {
  const Plan& plan = blueprint.plan;
  std::vector<FixedPlace> places(list.tasks.size());
  if (ordered(plan, list)) {
    for (std::size_t w = 0; w < plan.order.size(); ++w) {
      std::int64_t turn = 0;
      for (const std::uint32_t t : plan.order[w]) {
        places[t] = {static_cast<int>(w), fills_gaps(list.tasks[t]) ? 0 : ++turn};
      }
    }
  } else if (plan.placement == Placement::hybrid) {
    std::vector<int> first_worker;  // by group
    std::vector<std::uint32_t> first_chunk;
    const std::vector<PlanWorker> workers = workers_of(plan);
    const auto groups = groups_of(plan);
    std::uint32_t chunks = 0;
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      const auto found = std::ranges::find(workers, std::optional(GroupId{g}), &PlanWorker::group);
      first_worker.push_back(static_cast<int>(found - workers.begin()));
      first_chunk.push_back(chunks);
      chunks += static_cast<std::uint32_t>(groups[g]->chunks.size());
    }
    for (std::size_t t = 0; t < list.tasks.size(); ++t) {
      const Task& task = list.tasks[t];
      const std::uint32_t g = task.group.value;
      const std::optional<ChunkId> chunk = computed_chunk(task);
      if (!chunk || task.on_host || groups[g]->kind != DeviceKind::cpu) continue;
      places[t].worker =
          first_worker[g] + worker_of_chunk(*groups[g], chunk->value - first_chunk[g]);
    }
  }
  return places;
}

std::vector<double> contention_of(const Blueprint& blueprint, const TaskList& list) {
  const std::vector<double> by_worker = contention_of(blueprint.plan);
  std::vector<double> contention(list.tasks.size(), 1);
  if (std::ranges::all_of(by_worker, [](double each) { return each == 1; })) return contention;
  const std::vector<PlanWorker> workers = workers_of(blueprint.plan);
  const std::vector<FixedPlace> places = fixed_places(blueprint, list);
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    if (places[t].worker >= 0) {
      contention[t] = by_worker[static_cast<std::size_t>(places[t].worker)];
      continue;
    }
    double sum = 0, count = 0;
    for (std::size_t w = 0; w < workers.size(); ++w) {
      if (workers[w].group != std::optional(list.tasks[t].group)) continue;
      sum += by_worker[w];
      ++count;
    }
    if (count > 0) contention[t] = sum / count;
  }
  return contention;
}

std::vector<std::string> order_faults(const Blueprint& blueprint, const TaskList& list) {
  std::vector<std::string> found;
  const Plan& plan = blueprint.plan;
  if (!ordered(plan, list)) return found;
  const std::vector<PlanWorker> workers = workers_of(plan);
  const std::size_t count = list.tasks.size();
  std::vector<int> runs(count, 0);
  std::vector<std::vector<std::uint32_t>> waits_for(count);
  for (std::size_t w = 0; w < plan.order.size(); ++w) {
    std::optional<std::uint32_t> before;
    for (const std::uint32_t t : plan.order[w]) {
      const std::string who = "worker " + std::to_string(w);
      if (t >= count) {
        found.push_back(who + " is to run task " + std::to_string(t) + " of " +
                        std::to_string(count));
        continue;
      }
      ++runs[t];
      const Task& task = list.tasks[t];
      const bool may =
          w < workers.size() && (task.on_host ? workers[w].kind == DeviceKind::cpu
                                              : workers[w].group == std::optional(task.group));
      if (!may) found.push_back(who + " cannot run " + named(list, t) + " of another group");
      if (fills_gaps(task)) continue;
      if (before) waits_for[t].push_back(*before);
      before = t;
    }
  }
  for (std::size_t t = 0; t < count; ++t)
    if (runs[t] != 1)
      found.push_back(named(list, t) + " is run by " + (runs[t] == 0 ? "nobody" : "several"));
  if (!found.empty()) return found;

  Dependencies dependencies;
  for (const auto& [task, on] : dependencies.follow(list, 0, 0))
    waits_for[static_cast<std::size_t>(task)].push_back(static_cast<std::uint32_t>(on));
  std::vector<std::vector<std::uint32_t>> successors(count);
  std::vector<std::size_t> left(count), ready;
  for (std::uint32_t t = 0; t < count; ++t) {
    left[t] = waits_for[t].size();
    if (left[t] == 0) ready.push_back(t);
    for (const std::uint32_t on : waits_for[t]) successors[on].push_back(t);
  }
  std::vector<bool> done(count, false);
  std::size_t finished = 0;
  for (; finished < ready.size(); ++finished) {
    done[ready[finished]] = true;
    for (const std::uint32_t next : successors[ready[finished]])
      if (--left[next] == 0) ready.push_back(next);
  }
  if (finished < count) found.push_back(circle(list, waits_for, done));
  return found;
}

void require_order(const Blueprint& blueprint, const TaskList& list) {
  std::vector<std::string> found = order_faults(blueprint, list);
  if (!found.empty())
    found.emplace_back(
        "an order names the tasks of the regatta version it was made by: if that was another one, "
        "make the plan anew");
  require_no_fault(found);
}

std::vector<std::vector<std::uint32_t>> order_of(std::span<const RanAt> tasks,
                                                 std::size_t workers) {
  std::vector<std::vector<std::uint32_t>> order(workers);
  for (std::uint32_t t = 0; t < tasks.size(); ++t)
    order[static_cast<std::size_t>(tasks[t].worker)].push_back(t);
  for (std::vector<std::uint32_t>& mine : order)
    std::ranges::stable_sort(mine, {}, [&](std::uint32_t t) { return tasks[t].start; });
  return order;
}

StepPlaces::StepPlaces(std::vector<FixedPlace> places, std::size_t workers,
                       std::shared_ptr<const Pace> pace)
    : places_(std::move(places)), turns_(workers, 0), pace_(std::move(pace)) {
  for (FixedPlace& place : places_) {
    place.pace = pace_.get();
    if (place.turn > 0) ++turns_[static_cast<std::size_t>(place.worker)];
  }
}

FixedPlace StepPlaces::at(std::size_t task, std::int64_t step) const {
  FixedPlace place = places_[task];
  if (place.turn > 0) place.turn += step * turns_[static_cast<std::size_t>(place.worker)];
  return place;
}

std::shared_ptr<const Pace> pace_of(const Plan& plan, std::vector<double> seconds,
                                    std::vector<double> ranks) {
  if (plan.pace_s <= 0) return nullptr;
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return std::make_shared<const Pace>(
      Pace{plan.pace_s, powers_of(plan), std::move(seconds), std::move(ranks), all});
}

std::ptrdiff_t Turns::pick(std::span<const ReadyTask> ready, int worker, double now) {
  ended(worker);
  const std::ptrdiff_t found = choose(ready, worker);
  if (found < 0) return none;
  return leaves(ready[static_cast<std::size_t>(found)], worker, now) ? rest : found;
}

void Turns::ended(int worker) {
  Running& task = running_[static_cast<std::size_t>(worker)];
  if (const auto step = paced_.find(task.list); step != paced_.end())
    step->second.left -= std::exchange(task.seconds, 0);
}

bool Turns::leaves(const ReadyTask& task, int worker, double now) {
  const Pace* pace = task.fixed.pace;
  if (!pace || static_cast<std::size_t>(worker) >= pace->workers.size()) return false;
  if (pace != pace_) {  // another run begins, which counts its lists from the beginning
    pace_ = pace;
    paced_.clear();
    last_due_ = 0;
    std::ranges::fill(running_, Running{});
  }
  const auto [step, begins] = paced_.try_emplace(task.list);
  if (begins) {
    last_due_ = std::max(last_due_, now) + pace->step_s;
    step->second = {last_due_, pace->all_seconds};
    // Forgets steps that must have ended, since no more than these are in flight.
    while (paced_.begin()->first + most_in_flight < task.list) paced_.erase(paced_.begin());
  }
  double work = 0;  // seconds left of this step and of earlier ones
  for (auto each = paced_.begin(); each != std::next(step); ++each) work += each->second.left;
  return regatta::leaves(*pace, static_cast<std::size_t>(task.order), worker, work,
                         step->second.due - now);
}

std::ptrdiff_t Turns::choose(std::span<const ReadyTask> ready, int worker) {
  if (ready.empty()) return -1;
  const auto free = [](const ReadyTask& task) { return task.fixed.worker < 0; };
  if (std::ranges::all_of(ready, free))
    return static_cast<std::ptrdiff_t>(regatta::pick(ready, worker));
  allowed_.clear();
  where_.clear();
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const FixedPlace& fixed = ready[i].fixed;
    if (fixed.worker >= 0 && fixed.worker != worker) continue;
    if (fixed.turn > 0) {
      // The worker's next turn goes before whatever fills gaps.
      if (fixed.turn == next_[static_cast<std::size_t>(worker)])
        return static_cast<std::ptrdiff_t>(i);
      continue;
    }
    allowed_.push_back(ready[i]);
    where_.push_back(static_cast<std::ptrdiff_t>(i));
  }
  return allowed_.empty() ? -1 : where_[regatta::pick(allowed_, worker)];
}

void Turns::taken(const ReadyTask& task, int worker) {
  if (const Pace* pace = task.fixed.pace)
    running_[static_cast<std::size_t>(worker)] = {
        task.list, pace->seconds[static_cast<std::size_t>(task.order)]};
  skip(task.fixed);
}

void Turns::skip(const FixedPlace& place) {
  if (place.turn == 0) return;
  const auto worker = static_cast<std::size_t>(place.worker);
  std::int64_t& next = next_[worker];
  if (place.turn != next) {
    skipped_[worker].insert(place.turn);
    return;
  }
  do ++next;
  while (skipped_[worker].erase(next) > 0);
}

}  // namespace regatta
