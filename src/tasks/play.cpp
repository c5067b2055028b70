#include "tasks/play.h"

#include <algorithm>

#include "base/error.h"
#include "tasks/clock.h"
#include "tasks/node_engine.h"

namespace regatta {
namespace {

std::int64_t steps_to_play(const NodeWork& work) {
  constexpr int fewest = 4;  // two of them are averaged
  // How many tasks are played at least where their times vary, so that chance evens out.
  constexpr std::size_t tasks_to_see = 240;
  // Until the ring is full, submission runs ahead of its steady pace.
  const auto least = static_cast<std::size_t>(std::max(fewest, work.steps_in_flight() + 2));
  bool spreads = false;
  for (std::size_t pool = 0; pool < work.pools().size(); ++pool)
    spreads = spreads || !work.spread(pool, 1).none();
  return static_cast<std::int64_t>(spreads ? std::max(least, tasks_to_see / work.tasks()) : least);
}

// All on one node, where data need not travel.
RankHosts one_host(const NodeWork& work) {
  const auto memories = static_cast<std::size_t>(work.memories());
  return {std::vector<int>(work.pools().size(), 0),
          std::vector(memories, std::vector<int>(memories, -1)),
          std::vector(memories, std::vector<double>(memories, 0))};
}

// Seconds of [begin, end] that lie after `since`.
double part_after(double since, double begin, double end) {
  return std::max(0.0, end - std::max(since, begin));
}

}  // namespace

Played play(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs) {
  const NodeWork work(blueprint, list, costs, fixed_places(blueprint, list),
                      /*several_ranks=*/false);
  const std::int64_t steps = steps_to_play(work);
  const RankHosts hosts = one_host(work);
  EventClock clock;
  NodeEngine engine(clock, work, hosts,
                    {.steps = steps, .crowded = takes_all_cpus(blueprint.plan), .shifts = {}},
                    {.offer = {}, .step_done = [](std::int64_t) {}});
  engine.begin();
  clock.run([&] { return engine.finished(steps - 1) >= 0; });
  if (engine.finished(steps - 1) < 0) throw Error("internal: the play of a task list stands still");

  // The first third of the steps fills the pipeline.
  const std::int64_t last_uncounted = steps - 1 - std::max<std::int64_t>(2, steps * 2 / 3);
  const double since = engine.finished(last_uncounted);
  const double wall = engine.finished(steps - 1) - since;
  Played made;
  made.step_seconds = wall / static_cast<double>(steps - 1 - last_uncounted);
  made.workers.resize(static_cast<std::size_t>(engine.workers()));
  for (std::size_t i = 0; i < engine.events().size(); ++i) {
    const TaskEvents& task = engine.events()[i];
    if (task.worker < 0) continue;  // has not run: its step comes after the last that is waited for
    PlayedShares& shares = made.workers[static_cast<std::size_t>(task.worker)];
    shares.overhead += part_after(since, task.taken, task.start) / wall;
    shares.busy += part_after(since, task.start, task.end) / wall;
  }
  for (PlayedShares& shares : made.workers) {
    shares.idle = std::max(0.0, 1 - shares.busy - shares.overhead);
    const auto all = static_cast<double>(engine.workers());
    made.total.busy += shares.busy / all;
    made.total.overhead += shares.overhead / all;
    made.total.idle += shares.idle / all;
  }
  const auto last_step = engine.events().end() - static_cast<std::ptrdiff_t>(work.tasks());
  for (auto task = last_step; task != engine.events().end(); ++task)
    made.tasks.push_back({task->worker, task->start, task->end});
  return made;
}

double least_seconds(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs) {
  const NodeCosts work(blueprint, list, costs);
  std::vector<double> sum(work.pools().size(), 0);
  for (std::size_t t = 0; t < work.tasks(); ++t)
    sum[static_cast<std::size_t>(work.pool_of(t))] +=
        work.seconds(t, 1, 0) + work.runtime().task + work.runtime().access * work.buffers(t);
  double least = 0;
  for (std::size_t p = 0; p < sum.size(); ++p)
    least = std::max(least, sum[p] / work.pools()[p].workers);
  return least;
}

}  // namespace regatta
