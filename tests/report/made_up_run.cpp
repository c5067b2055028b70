#include "report/made_up_run.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "trace/store.h"

namespace regatta {
namespace {

constexpr int chunks = 8, segments = 3;
constexpr trace::Time microsecond = 1000;

// The tasks of a step: every chunk through all segments forth and back, then a reduce per segment.
std::vector<trace::TaskKind> kinds_of_a_step() {
  std::vector<trace::TaskKind> kinds;
  const auto add = [&](const char* phases, int segment, int chunk) {
    trace::TaskKind kind;
    kind.job = "train";
    kind.phases = phases;
    kind.group = "cpu";
    kind.segment = segment;
    kind.part = chunk < 0 ? -1 : 0;
    kind.chunk = chunk;
    kinds.push_back(kind);
  };
  for (int s = 0; s < segments; ++s)
    for (int c = 0; c < chunks; ++c) add(s == 0 ? "load+forward" : "forward", s, c);
  for (int s = segments; s-- > 0;)
    for (int c = 0; c < chunks; ++c) add("backward", s, c);
  for (int s = 0; s < segments; ++s) add("reduce+update+pack", s, -1);
  return kinds;
}

}  // namespace

trace::Record made_up_record(std::int64_t tasks, int workers) {
  trace::Record record;
  for (int w = 0; w < workers; ++w)
    record.workers.push_back({"cpu " + std::to_string(w), "cpu", "here", "cpu"});
  record.kinds = kinds_of_a_step();
  const auto per_step = static_cast<std::int64_t>(record.kinds.size());
  std::vector<trace::Time> free(static_cast<std::size_t>(workers), 0);
  trace::Time step_begin = 0, previous_stage = 0, stage_end = 0;
  for (std::int64_t id = 0; id < tasks; ++id) {
    const std::int64_t position = id % per_step;
    // Chunks wait for each other between stages, and the first of a step for the last step's end.
    if (position % chunks == 0) previous_stage = stage_end;
    const auto worker = static_cast<std::size_t>(std::ranges::min_element(free) - free.begin());
    trace::Task task;
    task.id = id;
    task.kind = static_cast<std::int32_t>(position);
    task.worker = static_cast<std::int32_t>(worker);
    task.step = id / per_step + 1;
    task.submit = step_begin;
    task.ready = previous_stage;
    task.start = std::max(free[worker], previous_stage) + 2 * microsecond;
    const double scatter =
        std::exp(0.4 * static_cast<double>(random_normal(1, 2, static_cast<std::uint64_t>(id))));
    task.end = task.start + static_cast<trace::Time>(150 * microsecond * scatter);
    task.acquire = microsecond;
    task.predicted = 150 * microsecond;
    free[worker] = task.end;
    stage_end = std::max(stage_end, task.end);
    record.tasks.push_back(task);
    // One of the stage before: whichever stands at the same place there.
    if (position >= chunks) record.dependencies.push_back({id, id - chunks});
    if (position + 1 == per_step || id + 1 == tasks) {
      record.marks.push_back({"step", task.step, stage_end});
      record.counters.push_back({"energy cpu", "J", "estimate", task.step, stage_end, 0.25});
      step_begin = stage_end;
    }
  }
  return record;
}

void write_made_up_run(const std::filesystem::path& folder, std::int64_t tasks, int workers) {
  std::filesystem::create_directories(folder);
  Json names = Json::array();
  for (const char* name : {"conv1", "conv2", "fc"})
    names.push_back({{"first", name}, {"last", name}});
  const Json run{
      {"regatta", "0"},
      {"recipe", {{"model", "lenet5"}, {"data", "made-up </script> & co"}, {"batch", 64}}},
      {"plan", {{"segments", names}, {"scheduler", "eager"}}},
      {"machine", {{"host", "nowhere"}, {"cpus", workers}}}};
  write_file(folder / "run.json", run.dump(2));
  std::string metrics;
  for (int step = 1; step <= 400; ++step) {
    const double noise = 1 + 0.03 * static_cast<double>(random_normal(3, 4, std::uint64_t(step)));
    const Json line{{"step", step},
                    {"lr", 0.1 / (1 + step / 100)},
                    {"loss", 2.3 * std::exp(-step / 120.0) * noise + 0.05},
                    {"images_per_s", (step <= 30 ? 4000 : 9000) * noise}};
    metrics += line.dump() + "\n";
  }
  for (int epoch = 1; epoch <= 4; ++epoch)
    metrics += Json{{"epoch", epoch},
                    {"train_loss", 1.0 / epoch},
                    {"train_accuracy", 1 - 0.2 / epoch},
                    {"test_loss", 1.1 / epoch},
                    {"test_accuracy", 1 - 0.25 / epoch}}
                   .dump() +
               "\n";
  write_file(folder / "metrics.jsonl", metrics);
  const Json classes{{{"name", "cat"}, {"count", 4}, {"accuracy", 0.75}},
                     {{"name", "dog"}, {"count", 2}, {"accuracy", 1.0}},
                     {{"name", "yak"}, {"count", 0}, {"accuracy", nullptr}}};
  const Json tested{
      {"step", 400}, {"per_class", classes}, {"confusion", {{3, 1, 0}, {0, 2, 0}, {0, 0, 0}}}};
  write_file(folder / "test.json", tested.dump());
  if (tasks > 0) trace::write_store(folder / trace::store_name, made_up_record(tasks, workers));
}

}  // namespace regatta
