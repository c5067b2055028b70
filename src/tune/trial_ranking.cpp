#include "tune/trial_ranking.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/files.h"

namespace regatta {
namespace {

// Predictions are rarely further off than this.
constexpr double as_wrong_as = 1.5, as_wrong_at_most = 2;
constexpr double as_good_as = 1.02, as_good_if_coarse = 1.03;
// Segments alone make less of a difference than how workers share the batch, so that many others of
// a kind wait until the best of every kind are seated.
constexpr int of_a_kind = 3;
// Of so many of the best, the other way of loading is tried next to them.
constexpr std::size_t with_twins = 2;

using Cut = std::tuple<std::string, std::size_t, int, int>;

Cut cut_of(const Candidate& each) {
  const Granularity& granularity = each.granularity;
  return {granularity.segments, granularity.chunks, granularity.team, granularity.workers};
}

// What a task less is worth is less than predictions err, but it is easily tried.
void bring_twins_together(std::vector<std::size_t>& order, const Choice& choice) {
  auto at = order.begin();
  for (std::size_t pair = 0; pair < with_twins && at != order.end(); ++pair) {
    const Cut cut = cut_of(choice.candidates[*at]);
    const auto twin = std::find_if(
        ++at, order.end(), [&](std::size_t i) { return cut_of(choice.candidates[i]) == cut; });
    if (twin == order.end()) continue;
    std::rotate(at, twin, twin + 1);
    ++at;
  }
}

// How much a team gains is predicted worse than anything else: next to the best the best one with
// teams is tried, or without if that has them. Returns which; nothing if there is none.
std::optional<std::size_t> bring_other_teams(std::vector<std::size_t>& order,
                                             const Choice& choice) {
  const auto in_teams = [&](std::size_t i) { return choice.candidates[i].granularity.team > 1; };
  const auto other = std::ranges::find_if(
      order, [&](std::size_t i) { return in_teams(i) != in_teams(order.front()); });
  if (other == order.end()) return std::nullopt;
  std::rotate(order.begin() + 1, other, other + 1);
  return order[1];
}

void mix_kinds(std::vector<std::size_t>& order, const Choice& choice) {
  std::map<std::tuple<std::size_t, int, int>, int> seated;
  std::vector<std::size_t> first, later;
  for (const std::size_t i : order) {
    const Granularity& each = choice.candidates[i].granularity;
    int& so_far = seated[{each.chunks, each.team, each.workers}];
    const bool twin =
        !first.empty() && cut_of(choice.candidates[first.back()]) == cut_of(choice.candidates[i]);
    const bool early = twin || ++so_far <= of_a_kind;
    (early ? first : later).push_back(i);
  }
  first.insert(first.end(), later.begin(), later.end());
  order = std::move(first);
}

}  // namespace

std::string step_signature(const Graph& graph, const Recipe& recipe, const Plan& plan) {
  Json cut = to_json(plan, graph);
  for (const char* key : {"regatta_plan", "recipe", "platform", "cpus"}) cut.erase(key);
  if (takes_all_cpus(plan)) cut["workers_submit"] = true;  // all that CPUs decide
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
  std::vector<std::size_t> order(choice.candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto predicted = [&](std::size_t i) { return choice.candidates[i].predicted; };
  std::ranges::stable_sort(order, {}, predicted);
  std::set<std::pair<Cut, bool>> seen;
  std::erase_if(order, [&](std::size_t i) {
    const Candidate& each = choice.candidates[i];
    return !seen.insert({cut_of(each), each.plan.gather_loads}).second;
  });
  if (most > 2 * with_twins) bring_twins_together(order, choice);
  const Seconds least = predicted(order.front());
  mix_kinds(order, choice);
  const std::optional<std::size_t> other = bring_other_teams(order, choice);
  const auto alone = [&](std::size_t i) {
    const Granularity& each = choice.candidates[i].granularity;
    return each.workers * each.team == 1;
  };
  const auto lone = std::ranges::find_if(order, alone);
  std::vector<std::size_t> chosen;
  for (const std::size_t i : order) {
    const double most_wrong = i == other ? as_wrong_at_most : as_wrong_as;
    if (chosen.size() < most && predicted(i) <= most_wrong * least) chosen.push_back(i);
  }
  const bool missed = lone != order.end() && std::ranges::none_of(chosen, alone);
  if (missed && most > 2 && predicted(*lone) <= as_wrong_at_most * least) {
    if (chosen.size() == most) chosen.pop_back();
    chosen.push_back(*lone);
  }
  return chosen;
}

bool is_doubtful(const Candidate& candidate) {
  return candidate.was_tried() && candidate.tried > as_wrong_at_most * candidate.predicted;
}

std::string doubts(const Choice& choice) {
  std::string text;
  for (const Candidate& each : choice.candidates) {
    if (!is_doubtful(each)) continue;
    char line[160];
    std::snprintf(line, sizeof line,
                  "%zu chunks in segments %s on %d workers took %.3g ms a step where %.3g ms were "
                  "predicted: passed over while another plan does as predicted\n",
                  each.granularity.chunks, each.granularity.segments.c_str(),
                  each.granularity.workers, 1e3 * each.tried.count(), 1e3 * each.predicted.count());
    text += line;
  }
  return text;
}

void rank_by_trials(Choice& choice) {
  std::vector<Candidate>& all = choice.candidates;
  if (std::ranges::count_if(all, &Candidate::was_tried) < 2) return;
  const bool some_trusted = std::ranges::any_of(
      all, [](const Candidate& each) { return each.was_tried() && !is_doubtful(each); });
  const auto counts = [&](const Candidate& each) {
    return each.was_tried() && !(some_trusted && is_doubtful(each));
  };
  std::ranges::stable_sort(all, {}, [&](const Candidate& each) {
    return std::tuple(!counts(each), !each.was_tried(), each.expected());
  });
  const Seconds least = all.front().tried;
  const auto effort = [&](const Candidate& each) {
    return std::pair(!counts(each) || each.tried > as_good_as * least, each.tasks);
  };
  auto best = std::ranges::min_element(all, {}, effort);
  const auto coarse = std::ranges::find_if(
      all, [&](const Candidate& each) { return counts(each) && each.is_coarse(); });
  if (!best->is_coarse() && coarse != all.end() && coarse->tried <= as_good_if_coarse * least)
    best = coarse;
  std::rotate(all.begin(), best, best + 1);
}

}  // namespace regatta
