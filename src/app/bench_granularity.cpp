#include "app/bench_granularity.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>

#include "app/command.h"
#include "app/lists.h"
#include "base/error.h"
#include "base/files.h"
#include "models/models.h"
#include "plan/make_plan.h"
#include "platform/machine.h"
#include "report/granularity.h"
#include "report/scaling.h"
#include "tune/measured_run.h"
#include "tune/plan_job.h"
#include "tune/trials.h"

namespace regatta::app {
namespace {

using Clock = std::chrono::steady_clock;

// After the first round, what is so many times as slow as the best is not measured again.
constexpr double hopeless = 1.3;
// A plan that is slower than the automatic choice by more than this share is surely slower; others
// are measured again.
constexpr double contends = 0.12;

struct MeasuredPlan {
  Plan plan;
  std::vector<GranularityRun*> runs;  // that follow it
};

class Bench {
 public:
  explicit Bench(const GranularityFlags& flags)
      : flags_(flags), workers_(flags.workers.value_or(default_workers())) {}

  // `save` is given all cells whenever one is done: a bench takes long, and may be stopped.
  std::vector<GranularityCell> run(
      const std::function<void(const std::vector<GranularityCell>&)>& save) {
    std::vector<GranularityCell> cells;
    const std::vector<std::int64_t> sizes = positive("--sizes", flags_.sizes);
    const std::vector<std::int64_t> batches = positive("--batch", flags_.batches);
    for (const std::string& model : listed_models("--models", flags_.models))
      for (const std::int64_t size : sizes)
        for (const std::int64_t batch : batches) {
          GranularityCell cell;
          cell.model = model;
          const std::string side = std::to_string(size);
          cell.input = "3x" + side + "x" + side;
          cell.batch = batch;
          cell.not_run = "the bench was stopped before";
          cells.push_back(std::move(cell));
        }
    for (GranularityCell& cell : cells) {
      if (minutes() >= flags_.budget) {
        cell.not_run = "the budget of minutes is spent";
      } else {
        cell.not_run.clear();
        fill(cell);
        save(cells);
      }
      std::cerr << name_of(cell) << ": " << verdict(cell) << std::endl;
    }
    return cells;
  }

 private:
  // Before anything is measured, however far back in the list.
  static std::vector<std::int64_t> positive(const std::string& flag, const std::string& text) {
    std::vector<std::int64_t> numbers = parse_sizes(flag, text);
    if (std::ranges::min(numbers) < 1) throw InputError(flag + " " + text + ": use 1 or more");
    return numbers;
  }
  double minutes() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count() / 60;
  }
  static std::string name_of(const GranularityCell& cell) {
    return cell.model + " " + cell.input + " batch " + std::to_string(cell.batch);
  }
  static std::string verdict(const GranularityCell& cell) {
    if (!cell.not_run.empty()) return "not run: " + cell.not_run;
    char text[160];
    std::snprintf(text, sizeof text, "%s in %.3f ms, %.3f times the best fixed choice",
                  cell.automatic.name.c_str(), 1e3 * cell.automatic.step_seconds(), cell.ratio());
    return text;
  }

  JobOptions options_of(const GranularityCell& cell) const {
    JobOptions options;
    options.model = cell.model;
    options.input = Shape::parse(cell.input);
    // More batches than a measurement sees, so that no epoch ends in one.
    const std::int64_t images = std::max<std::int64_t>(cell.batch * 20'000, 1'000'000);
    options.data = "synth:" + cell.input + "/10@" + std::to_string(images);
    options.test = "none";
    options.batch = cell.batch;
    options.workers = workers_;
    options.shuffle = false;
    options.optimizer.learning_rate = 0.001;
    return options;
  }

  void fill(GranularityCell& cell) {
    JobOptions options = options_of(cell);
    options.workers = 1;
    options.plan.chunks = {1};
    const TrainJob alone = make_job(options);
    cell.one_worker.emplace();
    cell.one_worker->name = "step x 1";
    const double first = measure(alone, alone.plan, Seconds(flags_.seconds / 4)).step_s;
    if (first / std::min(workers_, static_cast<int>(cell.batch)) > flags_.max_step) {
      cell.not_run = "a step on one worker takes " + std::to_string(first) + " s";
      return;
    }
    cell.one_worker->rounds.push_back(first);

    options = options_of(cell);
    const PlannedJob planned = plan_job(options, {});
    const TrainJob& job = planned.job;
    const Candidate& best = planned.choice->best();
    cell.automatic.name =
        best.granularity.segments + " x " + std::to_string(best.granularity.chunks) + ", " +
        std::to_string(best.granularity.workers) + " workers" +
        (best.granularity.team > 1 ? " of " + std::to_string(best.granularity.team) : "");
    cell.automatic.predicted = best.expected().count();
    cell.automatic.by_costs = best.predicted.count();
    std::vector<Plan> plans = fixed_plans(cell, job);
    rounds(cell, job, alone.plan, plans);
  }

  // {op, block, step} x {1, W, 2W, 4W} chunks, as the flags of train would make them.
  std::vector<Plan> fixed_plans(GranularityCell& cell, const TrainJob& job) const {
    std::vector<Plan> plans;
    std::vector<std::int64_t> counts{1};
    for (const std::int64_t times : {1, 2, 4}) {
      const std::int64_t count = std::min<std::int64_t>(times * workers_, cell.batch);
      if (std::ranges::find(counts, count) == counts.end()) counts.push_back(count);
    }
    for (const char* segments : {"op", "block", "step"})
      for (const std::int64_t count : counts) {
        PlanOptions options;
        options.workers = workers_;
        options.cpus = available_cpus();
        options.layout = default_cpu_layout();
        options.segments = segments;
        options.chunks = {count};
        plans.push_back(make_plan(job.graph, job.recipe, options));
        GranularityRun run;
        run.name = std::string(segments) + " x " + std::to_string(count);
        cell.fixed.push_back(std::move(run));
      }
    return plans;
  }

  // All take turns; after the first round those far behind rest. The least of many differs from
  // what it is compared with by chance alone, so the automatic choice and those about as fast go on
  // for as many rounds again. Plans that are the same are measured together.
  void rounds(GranularityCell& cell, const TrainJob& job, const Plan& alone,
              const std::vector<Plan>& plans) const {
    std::vector<MeasuredPlan> all{{job.plan, {&cell.automatic}}};
    const auto add = [&](const Plan& plan, GranularityRun& run) {
      const std::string text = text_of(plan, job);
      const auto same = std::ranges::find_if(
          all, [&](const MeasuredPlan& each) { return text_of(each.plan, job) == text; });
      if (same == all.end())
        all.push_back({plan, {&run}});
      else
        same->runs.push_back(&run);
    };
    // One worker was measured before, if shortly.
    if (cell.one_worker->step_seconds() > kind_error * cell.automatic.predicted) {
      cell.one_worker->dropped = true;
    } else {
      cell.one_worker->rounds.clear();
      add(alone, *cell.one_worker);
    }
    for (std::size_t i = 0; i < plans.size(); ++i) add(plans[i], cell.fixed[i]);
    const auto take = [&](const MeasuredPlan& each) {
      const Measured found = measure(job, each.plan, Seconds(flags_.seconds));
      for (GranularityRun* run : each.runs) run->rounds.push_back(found.step_s);
      if (found.taken_by_others) cell.taken.push_back(*found.taken_by_others);
      return found.step_s;
    };
    // The automatic choice, which is also compared with what was predicted, has two turns a round.
    const auto whose = [&](const Turn& turn) -> const MeasuredPlan& {
      return all[turn.cell % all.size()];
    };
    double best = 1e30;
    for (const Turn& turn : interleaved(all.size() + 1, flags_.rounds, flags_.seed)) {
      const MeasuredPlan& each = whose(turn);
      const bool automatic = each.runs.front() == &cell.automatic;
      if (turn.repeat > 0 && !automatic && each.runs.front()->step_seconds() > hopeless * best) {
        for (GranularityRun* run : each.runs) run->dropped = true;
        continue;
      }
      best = std::min(best, take(each));
    }
    const double mine = cell.automatic.step_seconds();
    std::erase_if(all, [&](const MeasuredPlan& each) {
      return each.runs.front() != &cell.automatic &&
             (each.runs.front()->dropped ||
              each.runs.front()->step_seconds() > (1 + contends) * mine);
    });
    // Alone, it is still compared with what was predicted.
    for (const Turn& turn : interleaved(all.size() + 1, flags_.rounds, flags_.seed + 1))
      take(whose(turn));
  }

  static std::string text_of(const Plan& plan, const TrainJob& job) {
    return step_signature(job.graph, job.recipe, plan);
  }

  const GranularityFlags& flags_;
  int workers_;
  Clock::time_point begin_ = Clock::now();
};

// Whether a result goes to something that cannot be written again, such as standard output.
bool is_stream(const std::optional<std::string>& file) {
  return file && (is_standard_output(*file) ||
                  (std::filesystem::exists(*file) && !std::filesystem::is_regular_file(*file)));
}

}  // namespace

void declare_granularity(CLI::App& app, GranularityFlags& flags) {
  app.add_option("--models,--model", flags.models, "names that regatta models lists, after commas")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--sizes", flags.sizes, "image sizes N: 3xNxN")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--batch", flags.batches, "images per step, several after commas")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "CPU workers, at most (default: the CPUs there are)")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--budget", flags.budget, "start no further cell after so many minutes")
      ->type_name("MINUTES")
      ->check(number(0.0, 10000.0))
      ->capture_default_str();
  app.add_option("--max-step", flags.max_step,
                 "leave out cells whose step would take longer, seconds: one worker's, shared")
      ->type_name("X")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds,
                 "length of one measurement, when it has settled; two steps at least")
      ->type_name("X")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds,
                 "measurements of each plan, taking turns; of the automatic one twice as many")
      ->type_name("N")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of the order of turns")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--csv", flags.csv_file, "write all measurements to FILE")->type_name("FILE");
  add_json_flag(app, flags.json_file);
  app.footer("Example:\n  regatta bench granularity --model tiny --sizes 28,64 --batch 4,32");
}

int run_granularity(const GranularityFlags& flags) {
  for (const auto* file : {&flags.json_file, &flags.csv_file})
    if (*file) require_writable(**file);
  const auto save = [&](const std::vector<GranularityCell>& cells) {
    Json json = granularity_json(cells);
    json["machine"] = {{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}};
    write_json_result(flags.json_file, json);
    if (flags.csv_file) write_file(*flags.csv_file, granularity_csv(cells));
  };
  const auto save_so_far = [&](const std::vector<GranularityCell>& cells) {
    // A stream is written once, at the end.
    if (!is_stream(flags.json_file) && !is_stream(flags.csv_file)) save(cells);
  };
  const std::vector<GranularityCell> cells = Bench(flags).run(save_so_far);
  std::cout << granularity_table(cells);
  save(cells);
  return 0;
}

}  // namespace regatta::app
