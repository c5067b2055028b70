#include "app/granularity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "graph/op.h"
#include "tasks/costs.h"
#include "tasks/rehearsed.h"
#include "train/calibrate.h"
#include "train/rehearse.h"

namespace regatta::app {
namespace {

// Of the predicted time, so much must rest on measurements.
constexpr double known_enough = 0.8;
// Calibration has time for three steps of a team that take this long.
constexpr double soon_measured = 0.1;
// A run that takes less is over before measuring has paid.
constexpr double worth_measuring = 3;
// Trying plans out: of the run that follows, and at most.
constexpr double of_the_run = 0.03;
constexpr Seconds longest_rehearsal{15};
// Below, plans were not chosen by costs: there is nothing to try.
constexpr double known_at_all = 0.25;

CostsFor costs_by(std::shared_ptr<const Profile> profile, std::string data) {
  return [profile = std::move(profile), data = std::move(data)](const Blueprint& blueprint) {
    return std::make_unique<ProfileCosts>(blueprint, profile, data);
  };
}

struct Known {
  double share = 0;     // of a step's predicted time
  double measured = 0;  // likewise, if at other sizes
  double seconds = 0;   // of a step, at least
};

Known known_of(const TrainJob& job, const PlanOptions& options,
               const std::shared_ptr<const Profile>& profile) {
  const Blueprint blueprint = make_blueprint(job.graph, make_plan(job.graph, job.recipe, options),
                                             numbers_of(job.recipe), true);
  const TaskList list = lower(blueprint, Job::train);
  const ProfileCosts costs(blueprint, profile, job.recipe.data);
  return {costs.known_share(list, options.workers), costs.measured_share(list, options.workers),
          least_seconds(blueprint, list, costs)};
}

// Where chunks meet or are fewer than workers, as calibrate_quickly() sees it.
bool teams_may_win(const TrainJob& job, const PlanOptions& options) {
  const bool open = !options.team && !options.chunks && options.workers > 1;
  return open &&
         (granules_of(job.graph, job.recipe.batch) < options.workers ||
          std::ranges::any_of(job.graph.nodes(), [](const Node& node) { return meets(node); }));
}

// By the plan that a rule of thumb makes, or a finer one: of a large network small chunks are
// measured alone, and tell enough.
Known known_at_best(const TrainJob& job, PlanOptions options,
                    const std::shared_ptr<const Profile>& profile) {
  options.devices = {DeviceKind::cpu};
  options.shares.reset();
  const Known coarse = known_of(job, options, profile);
  if (teams_may_win(job, options)) {
    // Whether they do is for measurements to tell.
    PlanOptions together = options;
    together.team = options.workers;
    together.chunks = {1};
    const Known found = known_of(job, together, profile);
    // From a few samples to many it is a long way, which nobody has to guess where it is soon gone.
    const double known = found.seconds < soon_measured ? found.share : found.measured;
    if (known < known_enough) return {0, 0, coarse.seconds};
  }
  if (options.chunks) return coarse;
  options.chunks = {
      std::min<std::int64_t>(4 * options.workers, granules_of(job.graph, job.recipe.batch))};
  const Known fine = known_of(job, options, profile);
  return {std::max(coarse.share, fine.share), std::max(coarse.measured, fine.measured),
          std::min(coarse.seconds, fine.seconds)};
}

// Kept on disk if that can be had.
void learn(Profile& profile, const ProfileStore& store, const std::vector<Observation>& seen) {
  try {
    profile = store.learn(seen);
  } catch (const InputError& error) {
    std::cerr << error.what() << "; measured for this run alone\n";
    profile.learn(seen);
  }
}

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

GranularityKind granularity_named(const std::string& name) {
  if (name == "auto") return GranularityKind::automatic;
  if (name == "fixed") return GranularityKind::fixed;
  throw InputError("--granularity " + name + ": use auto or fixed");
}

std::function<CostsFor(TrainJob&, const PlanOptions&)> cost_source(
    std::function<std::int64_t(const TrainJob&)> steps) {
  return [steps = std::move(steps)](TrainJob& job, const PlanOptions& options) {
    const ProfileStore store = profile_store();
    std::string remark;
    auto profile = std::make_shared<Profile>(store.load(&remark));
    if (!remark.empty()) std::cerr << remark << "\n";
    const Known known = known_at_best(job, options, profile);
    const bool worth = !steps || static_cast<double>(steps(job)) * known.seconds > worth_measuring;
    if (known.share < known_enough && worth) {
      std::cerr << "measuring what the work of " << job.recipe.model
                << " costs here, once: a few seconds\n";
      const std::vector<Observation> seen =
          calibrate_quickly(job.graph, job.recipe, job.data, options.workers);
      learn(*profile, store, seen);
    }
    job.profile = profile;
    return costs_by(profile, job.recipe.data);
  };
}

std::function<void(TrainJob&)> rehearsal(std::function<std::int64_t(const TrainJob&)> steps) {
  return [steps = std::move(steps)](TrainJob& job) {
    Choice& choice = *job.choice;
    if (choice.best().known < known_at_all) return;
    recall(choice, job.graph, job.recipe, *job.profile);
    std::optional<double> run_seconds;
    if (steps) run_seconds = static_cast<double>(steps(job)) * choice.best().step_seconds;
    const Seconds longest = longest_trials(run_seconds);
    TrialNote note(longest);
    const std::vector<Observation> seen = rehearse(job, longest, [&] { note.on_turn(); });
    if (!seen.empty()) {
      keep(job, seen);
      recall(choice, job.graph, job.recipe, *job.profile);
    }
    settle(choice);
  };
}

Seconds longest_trials(std::optional<double> run_seconds) {
  if (!run_seconds) return longest_rehearsal;
  return std::min(longest_rehearsal, Seconds(of_the_run * *run_seconds));
}

void TrialNote::on_turn() {
  const Seconds passed = std::chrono::steady_clock::now() - begin_;
  char text[80];
  std::snprintf(text, sizeof text, "trying plans out: %.0f s of at most %.0f s", passed.count(),
                std::ceil(longest_.count()));
  progress_.note(text);
}

void keep(TrainJob& job, const std::vector<Observation>& seen) {
  const auto profile = std::make_shared<Profile>(*job.profile);
  learn(*profile, profile_store(), seen);
  job.profile = profile;
}

void LoadMeter::on_step() {
  const WorkerLoad now = executor_.load();
  if (running_ && ++steps_ > warm_up && now.workers > 0) {
    kernels_ += seconds_of(now.kernels - last_.kernels);
    runtime_ += seconds_of(now.runtime - last_.runtime);
    all_ += std::chrono::duration<double>(now.when - last_.when).count() * now.workers;
  }
  last_ = now;
  running_ = true;
}

std::optional<double> LoadMeter::idle_share() const {
  if (all_ <= 0) return std::nullopt;
  return std::max(0.0, 1 - (kernels_ + runtime_) / all_);
}

std::optional<double> LoadMeter::overhead_share() const {
  if (all_ <= 0) return std::nullopt;
  return runtime_ / all_;
}

Json granularity_fields(const TrainJob& job, const LoadMeter& meter) {
  std::size_t chunks = 0;
  int team = 1, workers = 0;
  for (const DeviceGroup* group : groups_of(job.plan)) {
    chunks += group->chunks.size();
    if (group->kind == DeviceKind::cpu) team = group->team;
    workers += group->workers;
  }
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  return {{"granularity",
           {{"segments", job.plan.segments.size()},
            {"chunks", chunks},
            {"team", team},
            {"workers", workers}}},
          {"predicted_step_s", job.choice ? Json(job.choice->best().expected_seconds()) : Json()},
          {"idle_share", or_null(meter.idle_share())},
          {"overhead_share", or_null(meter.overhead_share())}};
}

}  // namespace regatta::app
