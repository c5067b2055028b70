#include "trace/toy_run.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "trace/analysis.h"

namespace regatta::trace {
namespace {

constexpr std::array<const char*, 6> phases{"load",   "forward",          "combine",
                                            "reduce", "forward+backward", "update+pack"};

Worker cpu(int number) { return {"cpu " + std::to_string(number), "cpu", "here", "cpu"}; }

}  // namespace

Record toy_run(const ToyOptions& options) {
  std::mt19937_64 random(options.seed);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  Record record;
  for (int w = 0; w < options.workers; ++w) record.workers.push_back(cpu(w));
  for (int k = 0; k < 12; ++k)
    record.kinds.push_back({.job = "train",
                            .phases = phases[static_cast<std::size_t>(k) % phases.size()],
                            .group = "cpu",
                            .segment = k});
  if (options.transfers) record.links.push_back({"ram", "gpu", 1000, 3});

  // Work conserving: the earliest possible start goes first.
  const std::int64_t count = std::int64_t{options.steps} * options.tasks_per_step;
  std::vector<Time> free(record.workers.size(), 0);
  std::vector<Time> step_end(static_cast<std::size_t>(options.steps) + 1, 0);
  for (std::int64_t id = 0; id < count; ++id) {
    Task task;
    task.id = id;
    task.step = 1 + id / options.tasks_per_step;
    task.kind = static_cast<std::int32_t>(draw(0, 11));
    task.submit = id * 10;
    task.ready = task.submit;
    for (std::int64_t d = draw(0, 3); d > 0 && id > 0; --d) {
      const std::int64_t on = draw(std::max<std::int64_t>(0, id - 15), id - 1);
      record.dependencies.push_back({id, on});
      task.ready = std::max(task.ready, record.tasks[static_cast<std::size_t>(on)].end);
    }
    const auto chosen = options.central_queue ? std::ranges::min_element(free) - free.begin()
                                              : draw(0, options.workers - 1);
    Time& worker_free = free[static_cast<std::size_t>(chosen)];
    task.worker = static_cast<std::int32_t>(chosen);
    task.acquire = draw(0, 20);
    task.start = std::max(worker_free, task.ready) + task.acquire + draw(0, 30);
    task.end = task.start + draw(0, 4) * draw(1, 500);
    task.predicted = draw(1, 1000);
    worker_free = task.end;
    Time& ended = step_end[static_cast<std::size_t>(task.step)];
    ended = std::max(ended, task.end);
    record.tasks.push_back(task);
  }
  std::ranges::sort(record.dependencies, {},
                    [](const Dependency& each) { return std::pair(each.task, each.on); });
  Time latest = 0;
  for (int step = 1; step <= options.steps; ++step) {
    latest = std::max(latest, step_end[static_cast<std::size_t>(step)]);
    record.marks.push_back({"step", step, latest});
  }
  return record;
}

RecordBuilder::RecordBuilder(int workers) {
  for (int w = 0; w < workers; ++w) record.workers.push_back(cpu(w));
}

std::int64_t RecordBuilder::task(int worker, std::int64_t step, const std::string& what, Time start,
                                 Time end, const std::vector<std::int64_t>& on) {
  const TaskKind kind{.job = "train", .phases = what, .group = "cpu"};
  auto found = std::ranges::find(record.kinds, kind);
  if (found == record.kinds.end()) found = record.kinds.insert(found, kind);
  Task task;
  task.id = static_cast<std::int64_t>(record.tasks.size());
  task.kind = static_cast<std::int32_t>(found - record.kinds.begin());
  task.worker = worker;
  task.step = step;
  task.submit = 0;
  task.start = start;
  task.end = end;
  for (const std::int64_t each : on) record.dependencies.push_back({task.id, each});
  record.tasks.push_back(task);
  fill_ready(record);
  return task.id;
}

}  // namespace regatta::trace
