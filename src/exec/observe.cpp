#include "exec/observe.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include "profile/robust.h"
#include "profile/signature.h"
#include "profile/timings.h"

namespace regatta {
namespace {

using Time = TraceClock::time_point;

// A task counts as timed if its thread had a CPU for at least this share of the task's time. The
// thread that submits interrupts workers for less.
constexpr double least_own = 0.8;
// A step that took longer than so many times the median step was held up as a whole, so its tasks
// do not count for the spread (docs/profile.md).
constexpr double held_up = 1.15;
// The fewest timed tasks that tell how far tasks spread: four for each level.
constexpr std::size_t fewest_tasks = 4 * spread_levels;

double seconds_between(Time from, Time to) { return Seconds(to - from).count(); }

// How many CPU workers computed, over time.
class BusyWorkers {
 public:
  BusyWorkers(const ListTimes& done, const CostNames& names) {
    std::vector<std::pair<Time, int>> changes;
    for (std::size_t t = 0; t < done.times.size(); ++t) {
      if (names.one_piece(done.list.tasks[t])) continue;
      changes.emplace_back(done.times[t].start, 1);
      changes.emplace_back(done.times[t].end, -1);
    }
    std::ranges::sort(changes);
    double sum = 0;
    int busy = 0;
    for (const auto& [when, change] : changes) {
      if (!marks_.empty()) sum += busy * seconds_between(marks_.back().when, when);
      busy += change;
      marks_.push_back({when, sum, busy});
    }
  }

  // The mean between two times.
  double between(Time from, Time to) const {
    return (until(to) - until(from)) / seconds_between(from, to);
  }

 private:
  struct Mark {
    Time when;
    double sum;  // worker-seconds up to here
    int busy;    // from here on
  };
  double until(Time when) const {
    auto after = std::ranges::upper_bound(marks_, when, {}, &Mark::when);
    if (after == marks_.begin()) return 0;
    --after;
    return after->sum + after->busy * seconds_between(after->when, when);
  }
  std::vector<Mark> marks_;
};

// One worker, two, four, ... or all; 0 if it is none of them.
int level_of(double busy, int all) {
  int nearest = all;
  for (int level = 1; level < all; level *= 2)
    if (std::abs(std::log(busy / level)) < std::abs(std::log(busy / nearest))) nearest = level;
  return std::abs(busy / nearest - 1) <= 0.2 ? nearest : 0;
}

// Seconds for a task without buffers (`fixed`) and for each buffer (`each`): the line through the
// medians of the tasks with the fewest and with the most buffers.
struct Line {
  double fixed = 0, each = 0;
};
std::optional<Line> line_through(const std::map<std::size_t, std::vector<double>>& by_buffers) {
  if (by_buffers.empty()) return std::nullopt;
  const auto& [few, fast] = *by_buffers.begin();
  const auto& [many, slow] = *by_buffers.rbegin();
  Line line{median(fast)};
  if (many > few)
    line.each = std::max(0.0, (median(slow) - line.fixed) / static_cast<double>(many - few));
  line.fixed -= line.each * static_cast<double>(few);
  return line;
}

void note_runtime(std::vector<Observation>& all, const char* what, double seconds) {
  all.push_back({what, 1, 1, std::max(seconds, shortest_timing)});
}

// One for each signature, size and number of busy workers.
std::vector<Observation> means_of(std::span<const Observation> seen) {
  std::vector<Observation> means;
  for (const auto& [what, seconds] : timings_of(seen)) {
    const auto& [signature, size, busy] = what;
    means.push_back({std::string(signature), size, busy,
                     std::accumulate(seconds.begin(), seconds.end(), 0.0) /
                         static_cast<double>(seconds.size())});
  }
  return means;
}

}  // namespace

std::vector<Observation> observations_of(const ListTimes& done, const CostNames& names,
                                         bool bookkeeping) {
  // The same work may take longer here than there: the first chunk of a worker finds weights in
  // memory that the second finds in a cache. A step is the sum of all, so it has their mean.
  std::vector<Observation> all;
  const BusyWorkers busy_workers(done, names);
  const int workers = names.workers();
  const auto note = [&](const CostPiece& piece, Time start, Time end, Seconds cpu) {
    if (end <= start || piece.size <= 0) return;
    double seconds = seconds_between(start, end);
    if (cpu.count() > 0) seconds = std::min(seconds, cpu.count());
    const int sharing_workers = piece.name->sharing_workers;
    const int busy =
        sharing_workers > 0 ? sharing_workers : level_of(busy_workers.between(start, end), workers);
    if (busy > 0) all.push_back({piece.name->signature, piece.size, busy, seconds});
  };
  for (std::size_t t = 0; t < done.list.tasks.size(); ++t) {
    const Task& task = done.list.tasks[t];
    const TaskTimes& times = done.times[t];
    const auto samples = [&](const Action& action) { return done.spans[action.chunk.value].count; };
    if (names.one_piece(task)) {
      // The wait that makes a GPU slower is not the work's.
      if (!done.blueprint.group(task.group).slow.empty()) continue;
      const Action& first = task.actions.front();
      // Skips a chunk that has no sample of a short batch.
      if (of_chunk(first.phase) && samples(first) == 0) continue;
      note(names.whole(task, samples(first)), times.start, times.end, {});
      continue;
    }
    struct Named {
      CostPiece piece;
      bool wanted;
    };
    std::vector<Named> pieces;
    for (const Action& action : task.actions)
      for (const CostPiece& piece : names.pieces(action, samples(action)))
        pieces.push_back({piece, bookkeeping || of_chunk(action.phase)});
    if (pieces.size() != times.operators.size()) continue;  // it was not timed, or broke off
    // A thread that waits for its team was not interrupted. Which operator an interruption fell
    // into is not known, so all of the task's are shortened in proportion.
    const bool alone = done.blueprint.group(task.group).team == 1;
    double own = 1;
    if (alone && !times.operators.empty() && times.operators.front().cpu.count() == 0)
      own = std::min(1.0, Seconds(times.cpu).count() / seconds_between(times.start, times.end));
    if (own < least_own) continue;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!pieces[i].wanted) continue;
      const OperatorTime& timed = times.operators[i];
      Seconds cpu{};
      if (alone)
        cpu = timed.cpu.count() > 0 ? Seconds(timed.cpu) : own * Seconds(timed.end - timed.start);
      note(pieces[i].piece, timed.start, timed.end, cpu);
    }
  }
  return means_of(all);
}

void StepMean::add(const ListTimes& done, std::vector<Observation> seen) {
  Time first = Time::max(), last = Time::min();
  for (const TaskTimes& task : done.times) {
    first = std::min(first, task.start);
    last = std::max(last, task.end);
  }
  steps_.push_back({done.times.empty() ? 0 : seconds_between(first, last), std::move(seen)});
}

std::vector<Observation> StepMean::get() const {
  std::vector<double> seconds;
  for (const Step& step : steps_) seconds.push_back(step.seconds);
  const double longest = held_up * median(seconds);
  std::vector<Observation> all;
  for (const Step& step : steps_)
    if (step.seconds <= longest) std::ranges::copy(step.seen, std::back_inserter(all));
  return means_of(all);
}

void SpreadMeter::add(const ListTimes& done) {
  // Time that the submitting thread takes from workers, where it has no CPU of its own, is counted
  // by the node engine. Time that other processes take is a part of the spread: workers wait for
  // it where they meet.
  const bool interrupted =
      takes_all_cpus(done.blueprint.plan) && done.blueprint.group(GroupId{0}).team == 1;
  Step step;
  for (const ChunkSpan& span : done.spans) step.samples += span.count;
  Time first = Time::max(), last = Time::min();
  for (std::size_t t = 0; t < done.list.tasks.size(); ++t) {
    const std::vector<Action>& actions = done.list.tasks[t].actions;
    const auto found =
        std::ranges::find_if(actions, [](const Action& action) { return runs_part(action.phase); });
    if (found == actions.end()) continue;
    const TaskTimes& times = done.times[t];
    double seconds = seconds_between(times.start, times.end);
    if (interrupted && times.cpu.count() > 0)
      seconds = std::min(seconds, Seconds(times.cpu).count());
    if (seconds <= 0) continue;
    first = std::min(first, times.start);
    last = std::max(last, times.end);
    const Kind kind{found->phase, found->segment.value, found->part,
                    done.spans[found->chunk.value].count};
    step.tasks.emplace_back(kind, seconds);
  }
  if (step.tasks.empty()) return;
  step.seconds = seconds_between(first, last);
  steps_.push_back(std::move(step));
}

bool SpreadMeter::enough() const {
  std::size_t tasks = 0;
  for (const Step& step : steps_) tasks += step.tasks.size();
  return tasks >= 2 * fewest_tasks;
}

std::map<SpreadMeter::Kind, std::vector<double>> SpreadMeter::typical_steps() const {
  std::map<std::int64_t, std::vector<double>> by_samples;
  for (const Step& step : steps_) by_samples[step.samples].push_back(step.seconds);
  std::map<std::int64_t, double> longest;
  for (auto& [samples, seconds] : by_samples) longest[samples] = held_up * median(seconds);
  std::map<Kind, std::vector<double>> kinds;
  for (const Step& step : steps_)
    if (step.seconds <= longest[step.samples])
      for (const auto& [kind, seconds] : step.tasks) kinds[kind].push_back(seconds);
  return kinds;
}

std::vector<Observation> SpreadMeter::observations(const KernelSetting& setting, int busy) const {
  // Tasks that take less than this share of the mean task's time do not matter.
  constexpr double matters = 0.1;
  const std::map<Kind, std::vector<double>> kinds = typical_steps();
  double sum = 0, count = 0;
  for (const auto& [kind, seconds] : kinds) {
    sum += typical(seconds).value * static_cast<double>(seconds.size());
    count += static_cast<double>(seconds.size());
  }
  std::vector<double> factors;
  for (const auto& [kind, seconds] : kinds) {
    const double usual = typical(seconds).value;
    if (usual < matters * sum / count) continue;
    for (const double each : seconds) factors.push_back(each / usual);
  }
  if (factors.size() < fewest_tasks) return {};
  std::ranges::sort(factors);
  std::vector<Observation> all;
  for (std::size_t level = 0; level < spread_levels; ++level) {
    const std::size_t from = level * factors.size() / spread_levels,
                      to = (level + 1) * factors.size() / spread_levels;
    double mean = 0;
    for (std::size_t i = from; i < to; ++i) mean += factors[i] / static_cast<double>(to - from);
    all.push_back({spread_signature(setting), static_cast<double>(level + 1), busy, mean});
  }
  return all;
}

std::vector<Observation> submission_observations_of(const ListTimes& done) {
  std::map<std::size_t, std::vector<double>> by_buffers;
  for (std::size_t t = 1; t < done.list.tasks.size(); ++t)
    by_buffers[done.list.tasks[t - 1].accesses.size()].push_back(
        seconds_between(done.times[t - 1].submit, done.times[t].submit));
  const auto line = line_through(by_buffers);
  if (!line) return {};
  std::vector<Observation> all;
  note_runtime(all, "runtime submission", line->fixed);
  note_runtime(all, "runtime dependency", line->each);
  return all;
}

std::vector<Observation> start_observations_of(const ListTimes& done) {
  const std::size_t count = done.list.tasks.size();
  const std::span<const TaskTimes> times = done.times;
  // When all that a task waits for was there, and the task that came last.
  std::vector<Time> ready(count);
  std::vector<std::optional<std::size_t>> last(count);
  for (std::size_t t = 0; t < count; ++t) ready[t] = times[t].submit;
  Dependencies dependencies;
  for (const auto& [task, on] : dependencies.follow(done.list, 0, 0)) {
    const auto t = static_cast<std::size_t>(task), before = static_cast<std::size_t>(on);
    if (times[before].end < ready[t]) continue;
    ready[t] = times[before].end;
    last[t] = before;
  }
  std::vector<int> released(count, 0);
  for (const std::optional<std::size_t>& each : last)
    if (each) ++released[*each];

  std::map<int, std::vector<std::size_t>> by_worker;
  for (std::size_t t = 0; t < count; ++t) by_worker[times[t].worker].push_back(t);
  std::map<std::size_t, std::vector<double>> at_once;          // by buffers
  std::map<std::size_t, std::vector<std::size_t>> waited_for;  // by the task that came last
  for (auto& [worker, tasks] : by_worker) {
    std::ranges::sort(tasks, {}, [&](std::size_t t) { return times[t].start; });
    for (std::size_t i = 1; i < tasks.size(); ++i) {
      const std::size_t before = tasks[i - 1], t = tasks[i];
      if (ready[t] > times[before].end) {
        if (last[t]) waited_for[*last[t]].push_back(t);
      } else if (released[before] <= 1) {
        at_once[done.list.tasks[t].accesses.size()].push_back(
            seconds_between(times[before].end, times[t].start));
      }
    }
  }
  std::vector<Observation> all;
  const auto line = line_through(at_once);
  if (!line) return all;
  note_runtime(all, "runtime task", line->fixed);
  note_runtime(all, "runtime access", line->each);
  // Workers that waited: the first to start tells how long waking takes, the others how much later
  // each further task is ready.
  for (auto& [on, tasks] : waited_for) {
    std::ranges::sort(tasks, {}, [&](std::size_t t) { return times[t].start; });
    const auto buffers = [&](std::size_t i) {
      return static_cast<double>(done.list.tasks[tasks[i]].accesses.size());
    };
    note_runtime(all, "runtime wake",
                 seconds_between(ready[tasks.front()], times[tasks.front()].start) - line->fixed -
                     line->each * buffers(0));
    for (std::size_t i = 1; i < tasks.size(); ++i)
      note_runtime(all, "runtime release",
                   seconds_between(times[tasks[i - 1]].start, times[tasks[i]].start) /
                       std::max(buffers(i - 1), 1.0));
  }
  return all;
}

}  // namespace regatta
