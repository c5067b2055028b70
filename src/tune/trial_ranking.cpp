#include "tune/trial_ranking.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

#include "base/files.h"

namespace regatta {
namespace {

// Candidates that are alike in these differ in lanes, buckets or sizes of chunks alone.
using Cut = std::tuple<std::string, std::size_t, int, int, bool, Backward, Layout>;

Layout gpu_layout_of(const Plan& plan) {
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cuda) return group->layout;
  return {};
}

Cut cut_of(const Candidate& each) {
  const Granularity& granularity = each.granularity;
  return {granularity.segments,   granularity.chunks, granularity.team,        granularity.workers,
          each.plan.gather_loads, each.plan.backward, gpu_layout_of(each.plan)};
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
  std::set<Cut> cuts;
  std::erase_if(order, [&](std::size_t i) { return !cuts.insert(cut_of(all[i])).second; });
  const Seconds least = all[order.front()].predicted;
  std::set<PlanKind> kinds;
  std::vector<std::size_t> chosen, others;
  for (const std::size_t i : order) {
    const bool best_of_kind = kinds.insert(kind_of(all[i].granularity)).second;
    if (all[i].predicted <= (best_of_kind ? kind_error : prediction_error) * least)
      (best_of_kind ? chosen : others).push_back(i);
  }
  chosen.insert(chosen.end(), others.begin(), others.end());
  if (chosen.size() > most) chosen.resize(most);
  return chosen;
}

bool is_doubtful(const Candidate& candidate) {
  return candidate.was_tried() && candidate.tried > kind_error * candidate.predicted;
}

std::string doubts(const Choice& choice) {
  std::string text;
  for (const Candidate& each : choice.candidates) {
    if (!is_doubtful(each)) continue;
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
  std::ranges::stable_sort(all, {}, [&](const Candidate& each) {
    return std::pair(!each.was_tried(), each.expected());
  });
  // Where all are doubtful, the machine is slower than it was when costs were measured.
  std::vector<Candidate> doubtful;
  const bool some_trusted = std::ranges::any_of(
      all, [](const Candidate& each) { return each.was_tried() && !is_doubtful(each); });
  if (some_trusted) {
    std::ranges::copy_if(all, std::back_inserter(doubtful), is_doubtful);
    std::erase_if(all, is_doubtful);
  }
  prefer_simplest(all);
  const auto first_untried = std::ranges::find_if_not(all, &Candidate::was_tried);
  all.insert(first_untried, doubtful.begin(), doubtful.end());
}

}  // namespace regatta
