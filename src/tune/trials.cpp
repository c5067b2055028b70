#include "tune/trials.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

#include "base/files.h"
#include "tune/contest.h"
#include "tune/measured_run.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_finalists = 8;  // three rounds of halving

// Candidates that are alike in these differ in lanes, buckets or sizes of chunks alone.
using Cut = std::tuple<Granularity, bool, Backward, Layout>;

Cut cut_of(const Candidate& each) {
  const DeviceGroup* gpu = gpu_of(each.plan);
  return {each.granularity, each.plan.gather_loads, each.plan.backward,
          gpu ? gpu->layout : Layout{}};
}

// The finalists that were never tried, after the best of those that were: it is what they are
// compared with. None if all were.
std::vector<std::size_t> contestants(const Choice& choice,
                                     const std::vector<std::size_t>& finalists) {
  std::vector<std::size_t> untried;
  std::optional<std::size_t> best;
  for (const std::size_t i : finalists) {
    const Candidate& each = choice.candidates[i];
    if (!each.was_tried())
      untried.push_back(i);
    else if (!best || each.tried < choice.candidates[*best].tried)
      best = i;
  }
  if (best && !untried.empty()) untried.insert(untried.begin(), *best);
  return untried;
}

}  // namespace

std::string step_signature(const Graph& graph, const Recipe& recipe, const Plan& plan) {
  Json cut = to_json(plan, graph);
  for (const char* key : {"regatta_plan", "recipe", "platform", "cpus"}) cut.erase(key);
  if (takes_all_cpus(plan)) cut["takes_all_cpus"] = true;  // all that the number of CPUs decides
  if (recipe.batch_norm_group > 0) cut["batch_norm_group"] = recipe.batch_norm_group;
  return "step " + recipe.model + " " + recipe.input.text() + "/" + std::to_string(recipe.classes) +
         " batch " + std::to_string(recipe.batch) + " x " + std::to_string(recipe.accumulate) +
         " " + std::string(precision_name(recipe.precision)) + " " +
         std::string(optimizer_name(recipe.optimizer.kind)) + " " + recipe.data + " " +
         recipe.augment + " plan " + sha256_hex(cut.dump()).substr(0, 12);
}

void apply_stored_trials(Choice& choice, const Graph& graph, const Recipe& recipe,
                         const Profile& profile) {
  for (Candidate& each : choice.candidates)
    if (const Fit* fit = profile.find(step_signature(graph, recipe, each.plan)))
      each.tried = Seconds(fit->at(1, 1).seconds);
}

std::vector<std::size_t> finalists(const Choice& choice, std::size_t most) {
  const std::vector<Candidate>& all = choice.candidates;
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i].predicted; });
  const Seconds least = all[order.front()].predicted;
  std::set<Cut> cuts;
  std::set<PlanKind> kinds;
  std::vector<std::size_t> chosen, others;
  for (const std::size_t i : order) {
    if (!cuts.insert(cut_of(all[i])).second) continue;
    const bool best_of_kind = kinds.insert(kind_of(all[i].granularity)).second;
    if (all[i].predicted <= (best_of_kind ? kind_error : prediction_error) * least)
      (best_of_kind ? chosen : others).push_back(i);
  }
  chosen.insert(chosen.end(), others.begin(), others.end());
  if (chosen.size() > most) chosen.resize(most);
  return chosen;
}

Seconds longest_trials(std::optional<std::int64_t> steps, Seconds step) {
  constexpr Seconds longest{15};       // enough for all rounds of eight candidates at 60 ms a step
  constexpr double of_the_run = 0.03;  // the part of the run's predicted time that trials may take
  if (!steps) return longest;
  return std::min(longest, of_the_run * static_cast<double>(*steps) * step);
}

std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget) {
  const Clock::time_point begin = Clock::now();
  const double trials = budget / whole_trial(choice.best().predicted);
  std::size_t most = most_finalists;
  while (most > 0 && static_cast<double>(measurements_of_contest(most)) > trials) --most;
  const std::vector<std::size_t> tried = contestants(choice, finalists(choice, most));
  TrialNote note(budget);
  ContestRules rules;
  rules.measure = [&](std::size_t i) {
    note.on_turn();
    return Seconds(measure(job, choice.candidates[tried[i]].plan).step_s);
  };
  rules.time_left = [&] { return budget - (Clock::now() - begin); };
  std::vector<Seconds> times = contest(tried.size(), rules);
  std::vector<Observation> seen;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    Candidate each = choice.candidates[tried[i]];
    each.tried = times[i];
    // A trial that took far longer than predicted may have been disturbed, so it is repeated.
    if (each.is_doubtful() && rules.time_left() > Seconds(0))
      each.tried = std::min(times[i], rules.measure(i));
    if (each.was_tried())
      seen.push_back({step_signature(job.graph, job.recipe, each.plan), 1, 1, each.tried.count()});
  }
  return seen;
}

std::string doubts(const Choice& choice) {
  std::string text;
  for (const Candidate& each : choice.candidates) {
    if (!each.is_doubtful()) continue;
    const PlanKind kind = kind_of(each.granularity);
    const std::string workers = std::to_string(each.granularity.workers) + " workers";
    const std::string where = kind == PlanKind::gpu      ? "the GPU"
                              : kind == PlanKind::shared ? "the GPU and " + workers
                                                         : workers;
    char line[200];
    std::snprintf(line, sizeof line,
                  "%zu chunks in segments %s on %s took %.3g ms a step where %.3g ms were "
                  "predicted: passed over while another plan does as predicted\n",
                  each.granularity.chunks, each.granularity.segments.c_str(), where.c_str(),
                  1e3 * each.tried.count(), 1e3 * each.predicted.count());
    text += line;
  }
  return text;
}

void rank_by_trials(Choice& choice) {
  std::vector<Candidate>& all = choice.candidates;
  if (std::ranges::count_if(all, &Candidate::was_tried) < 2) return;
  // Where all are doubtful, the machine is slower than it was when costs were measured.
  const bool some_trusted = std::ranges::any_of(
      all, [](const Candidate& each) { return each.was_tried() && !each.is_doubtful(); });
  std::ranges::stable_sort(all, {}, [&](const Candidate& each) {
    return std::tuple(!each.was_tried(), some_trusted && each.is_doubtful(), each.expected());
  });
  prefer_simplest(all);
}

void TrialNote::on_turn() {
  const Seconds passed = Clock::now() - begin_;
  char text[80];
  std::snprintf(text, sizeof text, "trying plans out: %.0f s of at most %.0f s", passed.count(),
                std::ceil(longest_.count()));
  progress_.note(text);
}

}  // namespace regatta
