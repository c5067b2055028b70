#include "app/placement.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "app/tuning_flags.h"
#include "base/error.h"
#include "base/files.h"
#include "platform/machine.h"
#include "platform/platform.h"
#include "tasks/placement.h"
#include "trace/analysis.h"
#include "trace/store.h"
#include "train/run_folder.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

// Steps of the record by how long they took, the middle one first.
std::vector<std::int64_t> typical_steps(const trace::Record& record) {
  std::vector<std::pair<trace::Time, std::int64_t>> durations;
  trace::Time before = -1;
  for (const trace::Mark& mark : record.marks) {
    if (mark.name != "step") continue;
    if (before >= 0) durations.emplace_back(mark.time - before, mark.number);
    before = mark.time;
  }
  std::ranges::sort(durations);
  std::vector<std::int64_t> steps;
  for (std::size_t i = 0; i < durations.size(); ++i)
    steps.push_back(durations[(durations.size() / 2 + i) % durations.size()].second);
  return steps;
}

// The number of the first of the list's tasks among the record's kinds; -1: it has others.
std::int32_t first_kind_of(const trace::Record& record, const TaskList& list) {
  for (std::size_t first = 0; first + list.tasks.size() <= record.kinds.size(); ++first) {
    bool same = true;
    for (std::size_t t = 0; same && t < list.tasks.size(); ++t) {
      const trace::TaskKind& kind = record.kinds[first + t];
      same = kind.job == "train" && !kind.group.empty() &&
             kind.phases.starts_with(phase_name(list.tasks[t].actions.front().phase)) &&
             std::abs(kind.flops - list.tasks[t].flops) <= 1e-6 * list.tasks[t].flops;
    }
    if (same) return static_cast<std::int32_t>(first);
  }
  return -1;
}

}  // namespace

void add_worker_flags(CLI::App& app, PlacementFlags& flags) {
  app.add_option("--placement", flags.placement,
                 "dynamic: whoever is free takes the next task (default); hybrid: a chunk has one\n"
                 "worker; static: each worker has its ordered list, from predicted times")
      ->type_name("HOW");
  add_slow_flag(app, flags.slow);
}

void add_backward_flag(CLI::App& app, std::optional<std::string>& backward) {
  app.add_option("--backward", backward,
                 "whole, or split: tasks of weight gradients fill gaps until their update is due\n"
                 "(default: whole, or what is faster where a plan is chosen by costs)")
      ->check(CLI::IsMember({"whole", "split"}));
}

void add_recompute_flag(CLI::App& app, std::optional<std::string>& recompute) {
  app.add_option(
         "--recompute", recompute,
         "compute what is inside segments again in backward instead of keeping it, at the\n"
         "same numbers: auto (as many as the batch needs to fit), all, or segments counted\n"
         "from 0, such as 0-3,7 (default: none)")
      ->type_name("auto|SEGMENTS");
}

void add_placement_flags(CLI::App& app, PlacementFlags& flags) {
  add_worker_flags(app, flags);
  app.add_option("--plan", flags.plan, "follow this plan of regatta plan")->type_name("FILE");
  app.add_option("--platform", flags.platform,
                 "with --plan: the platform it was made for, to say that this machine is it")
      ->type_name("FILE");
  app.add_option("--replay", flags.replay, "repeat the schedule that this run's trace recorded")
      ->type_name("RUN");
}

std::string machine_fingerprint() {
  return sha256_hex(cpu_name() + "/" + std::to_string(available_cpus())).substr(0, 16);
}

void require_this_machine(const Plan& plan, const std::string& platform_name,
                          const std::optional<std::string>& platform_file) {
  std::vector<std::string> reasons = hindrances(plan);
  const int cpus = cpus_of(plan);
  if (cpus > available_cpus())
    reasons.push_back("it uses " + std::to_string(cpus) + " CPUs, this machine has " +
                      std::to_string(available_cpus()));
  const std::string here =
      platform_file ? read_platform(*platform_file).fingerprint() : machine_fingerprint();
  if (!plan.platform.empty() && plan.platform != here)
    reasons.push_back("it was made for platform '" + platform_name + "' (" + plan.platform +
                      "), this is '" + (platform_file ? *platform_file : host_name()) + "' (" +
                      here + "); make one here with regatta plan, or name it with --platform");
  if (reasons.empty()) return;
  std::string text = "the plan cannot be followed here: ";
  for (std::size_t i = 0; i < reasons.size(); ++i) text += (i ? "; " : "") + reasons[i];
  throw InputError(text);
}

void require_platform(const Plan& plan, const std::string& platform_name,
                      const std::optional<std::string>& platform_file) {
  if (!platform_file || plan.platform.empty()) return;
  if (const std::string named = read_platform(*platform_file).fingerprint(); named != plan.platform)
    throw InputError("the plan was made for platform '" + platform_name + "' (" + plan.platform +
                     "), --platform " + *platform_file + " is " + named);
}

TrainJob job_of_plan(const PlanFile& file) {
  TrainJob job;
  job.recipe = file.recipe;
  job.network = file.network;
  job.graph = graph_of_recipe(file.recipe, file.network);
  job.plan = file.plan;
  job.profile = stored_profile();
  return job;
}

TrainJob job_of_replay(const fs::path& run) {
  TrainJob job = read_run_json(run).job;
  const trace::Record record = trace::read_store(trace::store_of(run));
  job.plan.placement = Placement::dynamic;
  job.plan.order.clear();
  const Blueprint blueprint = make_blueprint(job.graph, job.plan, numbers_of(job.recipe), true);
  const TaskList list = lower(blueprint, ListKind::train);
  job.plan.order = recorded_order(record, blueprint, list);
  job.plan.placement = Placement::fixed;
  job.plan.scheduler = own_scheduler;  // the only one that follows an order
  job.plan.pace_s = 0;                 // the record says who rested
  job.profile = stored_profile();
  return job;
}

std::vector<std::vector<std::uint32_t>> recorded_order(const trace::Record& record,
                                                       const Blueprint& blueprint,
                                                       const TaskList& list) {
  const std::int32_t first = first_kind_of(record, list);
  if (first < 0)
    throw InputError("its trace is not of this run's tasks: record it again with --trace");
  const std::vector<PlanWorker> workers = workers_of(blueprint.plan);
  std::vector<int> number_of;  // by worker of the record
  std::map<std::string, int> seen;
  for (const trace::Worker& worker : record.workers) {
    const int number = seen[worker.kind]++;
    const auto found = std::ranges::find_if(workers, [&](const PlanWorker& each) {
      return (each.kind == DeviceKind::cpu ? "cpu" : "cuda") == worker.kind &&
             each.number == number;
    });
    number_of.push_back(found == workers.end() ? -1 : static_cast<int>(found - workers.begin()));
  }
  for (const std::int64_t step : typical_steps(record)) {
    std::vector<RanAt> tasks(list.tasks.size());
    std::size_t known = 0;
    for (const trace::Task& task : record.tasks) {
      const std::int64_t t = task.kind - first;
      if (task.step != step || t < 0 || t >= std::ssize(tasks) || task.worker < 0) continue;
      const int worker = number_of[static_cast<std::size_t>(task.worker)];
      if (worker < 0) continue;
      tasks[static_cast<std::size_t>(t)] = {worker, trace::seconds(task.start)};
      ++known;
    }
    if (known == tasks.size()) return order_of(tasks, workers.size());
  }
  throw InputError("its trace has no complete step to repeat; record some with --trace-steps");
}

std::string recipe_differences(const Recipe& asked, const Recipe& planned) {
  const Json here = asked.to_json(), there = planned.to_json();
  std::string text;
  const bool same_data =
      !asked.data_identity.is_null() && asked.data_identity == planned.data_identity;
  const auto add = [&](const std::string& key) {
    if (key == "data" && same_data) return;
    const Json mine = here.value(key, Json()), other = there.value(key, Json());
    if (mine == other) return;
    text +=
        (text.empty() ? "" : ", ") + key + " is " + mine.dump() + ", the plan's " + other.dump();
  };
  for (const auto& [key, value] : here.items()) add(key);
  for (const auto& [key, value] : there.items())
    if (!here.contains(key)) add(key);
  return text;
}

}  // namespace regatta::app
