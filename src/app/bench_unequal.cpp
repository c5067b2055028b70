#include "app/bench_unequal.h"

#include <iostream>

#include "app/command.h"
#include "app/trial.h"
#include "app/tuning_flags.h"
#include "base/error.h"
#include "base/files.h"
#include "exec/task_medians.h"
#include "platform/disturbance.h"
#include "platform/machine.h"
#include "report/statistics.h"
#include "report/text.h"
#include "tune/balance.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

struct Side {
  std::string shares;
  TrainJob job;
  Predicted predicted = {};
  std::vector<double> steps = {};  // by round
  std::vector<double> taken = {};  // by others, of the workers' CPU time, where it is known
  TaskMedians tasks = {};          // over rounds

  void measure_once(double seconds) {
    const Measured found = measure(job, job.plan, Seconds(seconds), true);
    steps.push_back(found.step_s);
    if (found.taken_by_others) taken.push_back(*found.taken_by_others);
    tasks.add(found.tasks);
  }
  // By tasks as they typically are in all rounds: chance, which makes workers early and late in
  // turn, would only add to what they are apart.
  TriedShares met() const {
    const PricedStep step = priced_step(job);
    return tried_shares(step.blueprint(), step.list(), tasks.get());
  }
};

TrainJob job_for(const UnequalFlags& flags, int workers) {
  PlanOptions plan;
  plan.segments = flags.segments;
  plan.chunks = std::vector<std::int64_t>{workers};
  return trial_job({flags.model, flags.input, flags.batch, workers}, plan);
}

}  // namespace

void declare_unequal(CLI::App& app, UnequalFlags& flags) {
  app.add_option("--model", flags.model, "a name that regatta models lists")->capture_default_str();
  app.add_option("--input", flags.input, "image size")->type_name("CxHxW")->capture_default_str();
  app.add_option("--batch", flags.batch, "images per step")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--segments", flags.segments, "as regatta train takes it")->capture_default_str();
  app.add_option("--workers", flags.workers, "CPU workers")
      ->check(whole_number(2, 256))
      ->capture_default_str();
  add_slow_flag(app, flags.slow);
  app.add_option("--calibrate", flags.calibrate, "seconds of measuring costs, before each round")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--balance", flags.balance, "at most so many seconds of trying shares out")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds,
                 "length of a measurement, when it has settled; three steps at least")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "measurements of each, taking turns")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  add_json_flag(app, flags.json_file);
  app.footer("Example:\n  regatta bench unequal --workers 2 --slow 1=2 --json result.json");
}

int run_unequal(const UnequalFlags& flags) {
  if (flags.json_file) require_writable(*flags.json_file);
  if (flags.batch < flags.workers)
    throw InputError("--batch " + std::to_string(flags.batch) + ": each of " +
                     std::to_string(flags.workers) + " workers needs an image; use " +
                     std::to_string(flags.workers) + " or more");
  const std::vector<double> slow = slow_workers(flags.slow, flags.workers);
  std::vector<Side> sides{{"alone", job_for(flags, 1)},
                          {"equal", job_for(flags, flags.workers)},
                          {"speed", job_for(flags, flags.workers)}};
  const auto profile = std::make_shared<Profile>();
  CalibrationOptions calibration;
  calibration.workers = flags.workers;
  calibration.budget = Seconds(flags.calibrate);
  calibration.in_turn = false;  // each worker has one chunk, of whatever size
  const auto learn = [&] { learn_costs(*profile, sides[1].job, calibration); };
  learn();
  for (Side& side : sides) {
    side.job.profile = profile;
    const auto shares = worker_shares(side.shares);
    if (shares) share_among_workers(side.job, *shares, flags.workers, flags.slow);
    if (shares != WorkerShares::speed) continue;
    const Seconds step(priced_step(side.job).play().step_seconds);
    balance_by_trials(side.job, step, Seconds(flags.balance), Keep::nowhere);
  }
  for (std::size_t round = 0; round < flags.rounds; ++round) {
    if (round > 0) learn();
    for (Side& side : sides) side.measure_once(flags.seconds);
  }
  for (Side& side : sides) side.predicted = predict(side.job);

  // The heterogeneous ideal: the sum of what each would do by itself.
  double together = 0;
  for (const double factor : slow) together += 1 / factor;
  const double ideal = median_of(sides.front().steps) / together;
  const double ideal_simulated = sides.front().predicted.step_s / together;
  Json rows = Json::array();
  std::printf("%s at %s, batch %lld; the ideal is a step of %s\n", flags.model.c_str(),
              flags.input.c_str(), static_cast<long long>(flags.batch),
              seconds_text(ideal).c_str());
  std::printf("%-7s %-14s %-40s %s\n", "", "", "measured", "simulated");
  std::printf("%-7s %-14s %-10s %-9s %-9s %-9s %-10s %-9s %s\n", "shares", "chunks", "step",
              "of ideal", "apart", "in all", "step", "of ideal", "apart");
  for (const Side& side : sides) {
    if (side.shares == "alone") continue;
    const double measured = median_of(side.steps);
    const TriedShares met = side.met();
    const std::vector<std::int64_t>& chunks = groups_of(side.job.plan).front()->chunks;
    std::string sizes;
    for (const std::int64_t chunk : chunks)
      sizes += (sizes.empty() ? "" : ",") + std::to_string(chunk);
    const Predicted& predicted = side.predicted;
    std::printf("%-7s %-14s %-10s %-9s %-9s %-9s %-10s %-9s %s\n", side.shares.c_str(),
                sizes.c_str(), seconds_text(measured).c_str(),
                percent_text(ideal / measured).c_str(), percent_text(met.apart()).c_str(),
                percent_text(met.apart_in_all()).c_str(), seconds_text(predicted.step_s).c_str(),
                percent_text(ideal_simulated / predicted.step_s).c_str(),
                percent_text(predicted.apart).c_str());
    const auto taken = mean_if_any(side.taken);
    if (const std::string text = disturbed_text(taken); !text.empty())
      std::printf("    %s\n", text.c_str());
    rows.push_back({{"shares", side.shares},
                    {"chunks", chunks},
                    {"measured_step_s", measured},
                    {"taken_by_others", taken ? Json(*taken) : Json()},
                    {"measured_efficiency", ideal / measured},
                    {"measured_apart", met.apart()},
                    {"measured_apart_in_all", met.apart_in_all()},
                    {"measured_busy_s", met.seconds},
                    {"simulated_step_s", predicted.step_s},
                    {"simulated_efficiency", ideal_simulated / predicted.step_s},
                    {"simulated_apart", predicted.apart}});
  }
  write_json_result(
      flags.json_file,
      {{"rows", rows},
       {"ideal_step_s", ideal},
       {"slow", slow},
       {"machine", {{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}}}});
  return 0;
}

}  // namespace regatta::app
