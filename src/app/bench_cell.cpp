#include "app/bench_cell.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "app/command.h"
#include "app/tuning_flags.h"
#include "base/error.h"
#include "models/models.h"
#include "train/job.h"
#include "train/loop.h"
#include "train/memory_check.h"
#include "train/weights.h"
#include "tune/plan_job.h"

namespace regatta::app {
namespace {

constexpr std::int64_t fewest_steps = 8;
constexpr std::int64_t most_images = 4'000'000;  // an epoch's order is held in memory

class Watch : public TrainObserver {
 public:
  explicit Watch(const CellOptions& options) : options_(options) {}

  void on_step(const StepRecord& record) override {
    seconds_.push_back(std::max(record.duration.count(), 1e-9));
    total_ += record.duration.count();
  }
  bool stop() override {
    return !options_.steps && std::ssize(seconds_) >= fewest_steps && total_ >= options_.seconds;
  }
  std::vector<double> take() { return std::move(seconds_); }

 private:
  const CellOptions& options_;
  std::vector<double> seconds_;
  double total_ = 0;
};

JobOptions job_options(const CellOptions& options) {
  JobOptions job;
  job.model = options.model;
  job.data = options.data.value_or(bench_data(options));
  job.test = "none";
  job.input = Shape::parse(input_of(options));
  job.batch = options.batch;
  job.workers = options.workers;
  job.shuffle = false;
  job.optimizer.learning_rate = 0.001;  // made-up images should not make the loss run away
  job.precision = precision_named(options.precision);
  job.plan.reduction = reduction_named(options.reduction);
  job.plan.devices = devices_named(options.devices);
  job.plan.segments = options.segments;
  job.plan.team = options.team;
  if (options.chunks) job.plan.chunks = parse_sizes("--chunks", *options.chunks);
  if (options.shares) job.plan.shares = parse_sizes("--shares", *options.shares);
  if (const char* wanted = std::getenv("STARPU_SCHED"); wanted && *wanted)
    job.plan.scheduler = wanted;
  if (options.scheduler) job.plan.scheduler = *options.scheduler;
  return job;
}

}  // namespace

std::string input_of(const CellOptions& options) {
  if (options.input) return Shape::parse(*options.input).text();
  const Graph graph = build_model(options.model);
  return graph.node(graph.input()).shape.text();
}

std::string bench_data(const CellOptions& options) {
  const std::int64_t images =
      options.steps ? std::min(*options.steps, most_images / options.batch + 1) * options.batch
                    : std::max(most_images, fewest_steps * options.batch);
  const std::int64_t classes =
      options.classes ? *options.classes : build_model(options.model).classes();
  return "synth:" + input_of(options) + "/" + std::to_string(classes) + "@" +
         std::to_string(images);
}

ScalingSample run_cell(const CellOptions& options) {
  const TrainJob job =
      plan_job(job_options(options), {.by_costs = by_costs(options.granularity)}).job;
  require_memory(job, job.plan, memory_limits(), Purpose::training);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, job.recipe.seed);
  TrainGoal goal;
  // Without a number of steps, the watch ends the run.
  goal.last_step = options.steps.value_or(INT64_MAX);
  Watch watch(options);
  const Speed speed = train(executor, job.recipe, job.data, nullptr, goal, watch);
  return {watch.take(), static_cast<double>(options.batch), speed.taken_by_others};
}

std::vector<std::string> flags_of(const CellOptions& options) {
  std::vector<std::string> flags{"--model",       options.model,
                                 "--data",        options.data.value_or(bench_data(options)),
                                 "--input",       input_of(options),
                                 "--batch",       std::to_string(options.batch),
                                 "--workers",     std::to_string(options.workers),
                                 "--devices",     options.devices,
                                 "--precision",   options.precision,
                                 "--reduction",   options.reduction,
                                 "--granularity", options.granularity};
  const auto add = [&](const char* flag, const std::optional<std::string>& value) {
    if (value) flags.insert(flags.end(), {flag, *value});
  };
  add("--scheduler", options.scheduler);
  if (options.team) add("--team", std::to_string(*options.team));
  add("--segments", options.segments);
  add("--chunks", options.chunks);
  add("--shares", options.shares);
  return flags;
}

}  // namespace regatta::app
