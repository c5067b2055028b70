#include "app/bench_runtime.h"

#include <charconv>
#include <deque>

#include "app/command.h"
#include "base/error.h"
#include "base/files.h"
#include "exec/executor.h"
#include "models/models.h"
#include "plan/make_plan.h"
#include "platform/disturbance.h"
#include "platform/machine.h"
#include "train/job.h"

namespace regatta::app {
namespace {

using Clock = std::chrono::steady_clock;

// How long each task holds its worker.
Seconds hold_of(const std::string& kernels) {
  if (kernels == "none") return Seconds(0);
  double seconds = 0;
  const char* const end = kernels.data() + kernels.size();
  const auto read = std::from_chars(kernels.data(), end, seconds);
  if (read.ec != std::errc{} || read.ptr != end || !(seconds >= 0 && seconds <= 1))
    throw InputError("--kernels " + kernels +
                     ": use none, or the seconds that each task takes, from 0 to 1");
  return Seconds(seconds);
}

std::vector<std::int64_t> counts(const char* flag, const std::string& text, std::int64_t most) {
  std::vector<std::int64_t> sizes = parse_sizes(flag, text);
  for (const std::int64_t size : sizes)
    if (size < 1 || size > most)
      throw InputError(std::string(flag) + " " + text + ": use 1 to " + std::to_string(most));
  return sizes;
}

struct Row {
  std::int64_t workers = 1, chunks = 1;
  std::size_t tasks = 0;  // of a step
  double tasks_per_s = 0;
  std::optional<double> taken_by_others = {};
};

Row measure(const Graph& graph, const RuntimeFlags& flags, std::int64_t workers,
            std::int64_t chunks, Seconds hold) {
  Recipe recipe;
  recipe.batch = chunks;  // of one sample each
  PlanOptions options{.workers = static_cast<int>(workers), .cpus = available_cpus()};
  options.layout = default_cpu_layout();
  options.chunks = {chunks};
  options.segments = flags.segments;
  const Plan plan = make_plan(graph, recipe, options);
  require_valid(plan, graph, recipe.batch);
  ExecOptions null;
  null.null_kernels = [hold](const Task&) { return hold; };
  Executor executor(graph, plan, std::move(null));

  StepInput input;
  input.samples = recipe.batch;
  input.load = [](std::int64_t, std::int64_t, std::byte*, Target*) {};
  executor.wait(executor.submit(ListKind::train, input));  // the first step makes buffers and lists
  std::deque<Ticket> on_their_way;
  const auto wait_for_first = [&] {
    executor.wait(on_their_way.front());
    on_their_way.pop_front();
  };
  std::int64_t steps = 0;
  DisturbanceMeter others({.threads = threads_of(plan), .cpus = available_cpus()});
  const Clock::time_point begin = Clock::now();
  do {
    on_their_way.push_back(executor.submit(ListKind::train, input));
    ++steps;
    if (std::ssize(on_their_way) == plan.steps_in_flight) wait_for_first();
  } while (Clock::now() - begin < Seconds(flags.seconds));
  while (!on_their_way.empty()) wait_for_first();
  const Seconds took = Clock::now() - begin;
  const std::size_t tasks = executor.tasks_per_step();
  return {workers, chunks, tasks,
          static_cast<double>(steps) * static_cast<double>(tasks) / took.count(), others.read()};
}

}  // namespace

void declare_runtime(CLI::App& app, RuntimeFlags& flags) {
  app.add_option("--model", flags.model, "a name that regatta models lists")->capture_default_str();
  app.add_option("--segments", flags.segments, "as regatta train takes it")->capture_default_str();
  app.add_option("--chunks", flags.chunks, "chunks of one sample in a step, several after commas")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--workers", flags.workers,
                 "CPU workers, several after commas (default: 1 and the CPUs there are)")
      ->type_name("LIST");
  app.add_option("--kernels", flags.kernels,
                 "none, or seconds for which each task holds its worker")
      ->type_name("none|SECONDS")
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "length of each measurement")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  add_json_flag(app, flags.json_file);
  app.footer("Example:\n  regatta bench runtime --workers 1,2 --chunks 16,256 --kernels none");
}

int run_runtime(const RuntimeFlags& flags) {
  if (flags.json_file) require_writable(*flags.json_file);
  const Seconds hold = hold_of(flags.kernels);
  const Graph graph = fuse(build_model(flags.model));
  const std::string all = available_cpus() == 1 ? "1" : "1," + std::to_string(available_cpus());
  const auto workers =
      counts("--workers", flags.workers.empty() ? all : flags.workers, most_workers);
  const auto chunks = counts("--chunks", flags.chunks, 100'000);
  std::printf("%-8s %7s %8s %12s %10s %10s\n", "workers", "chunks", "tasks", "tasks/s", "us a task",
              "in kernels");
  Json rows = Json::array();
  for (const std::int64_t count : workers)
    for (const std::int64_t cut : chunks) {
      const Row row = measure(graph, flags, count, cut, hold);
      const double in_kernels = row.tasks_per_s * hold.count() / static_cast<double>(row.workers);
      std::printf("%-8lld %7lld %8zu %12.0f %10.2f %9.1f%%\n", static_cast<long long>(row.workers),
                  static_cast<long long>(row.chunks), row.tasks, row.tasks_per_s,
                  1e6 / row.tasks_per_s, 100 * in_kernels);
      if (const std::string text = disturbed_text(row.taken_by_others); !text.empty())
        std::printf("    %s\n", text.c_str());
      rows.push_back(
          {{"workers", row.workers},
           {"chunks", row.chunks},
           {"tasks", row.tasks},
           {"tasks_per_s", row.tasks_per_s},
           {"in_kernels", in_kernels},
           {"taken_by_others", row.taken_by_others ? Json(*row.taken_by_others) : Json()}});
    }
  write_json_result(
      flags.json_file,
      {{"rows", rows},
       {"kernel_s", hold.count()},
       {"machine", {{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}}}});
  return 0;
}

}  // namespace regatta::app
