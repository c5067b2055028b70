// The choice of granularity: candidate plans are lowered and played with predicted costs; the one
// that is done first is taken.
#pragma once

#include <string>
#include <vector>

#include "plan/make_plan.h"
#include "tasks/priced_step.h"

namespace regatta {

// What a plan says of task sizes, for people and for --json.
struct Granularity {
  std::string segments;  // as --segments takes it
  std::size_t chunks = 1;
  int team = 1;
  int workers = 1;
  std::int64_t gpu_share = 0;  // samples that GPUs compute

  auto operator<=>(const Granularity&) const = default;
};

// One CPU worker, several, or teams of threads; a GPU by itself, or sharing the batch with cores.
enum class PlanKind { alone, workers, teams, gpu, shared };
PlanKind kind_of(const Granularity& granularity);

// With less than this share of a prediction measured, playing would compare guesses; and a plan
// whose prediction is guessed to a larger part than the best known one's does not compete with it.
inline constexpr double mostly_measured = 0.5;
// 19 of 20 predictions are off by less than this factor: a plan that is predicted to take longer
// than the best by more is not the fastest.
inline constexpr double prediction_error = 1.2;
// Plans of different kinds are compared less well: a team's gain has been mispredicted by this
// much. No plan that was tried undisturbed was slower than predicted by more (docs/compare.md).
inline constexpr double kind_error = 2;

struct Candidate {
  Plan plan;
  Granularity granularity;
  Seconds predicted{0};   // of a step
  PlayedShares shares;    // of the workers' time, as predicted
  std::size_t tasks = 0;  // of a step
  double known = 0;       // how much of the prediction rests on measurements, from 0 to 1
  Seconds tried{0};       // what real steps took; 0: it was not tried out

  bool was_tried() const { return tried > Seconds(0); }
  Seconds expected() const { return was_tried() ? tried : predicted; }
  // Its trials were disturbed, or the costs miss something that may come and go.
  bool is_doubtful() const { return was_tried() && tried > kind_error * predicted; }
};

// Moves the simplest of the fastest candidates to the front: of those that are expected to take at
// most 2% longer than `candidates.front()`, the one with the fewest tasks, then threads.
void prefer_simplest(std::vector<Candidate>& candidates);

struct Choice {
  std::vector<Candidate> candidates;  // the chosen one first, then by predicted time
  std::size_t compared = 0;           // plans that were played, or are slower by a bound
  bool by_costs = true;               // false: too little is measured, a rule of thumb was taken
  bool devices_open = false;          // which devices compute was chosen as well

  const Candidate& best() const { return candidates.front(); }
};

// Whether a plan fits into memory.
using PlanFits = std::function<bool(const Plan& plan)>;

// Fills in what `options` leaves open of segments, chunks, team, lanes and buckets, of shares of
// several devices and of which devices compute, and uses options.workers CPUs or fewer. Plans that
// do not fit are left out, unless none fits. Throws what make_plan throws.
Choice choose(
    const Graph& graph, const Recipe& recipe, const PlanOptions& options, const CostsFor& costs,
    const PlanFits& fits = [](const Plan&) { return true; });

// One plan with its predicted time.
Candidate candidate_of(const Graph& graph, const Recipe& recipe, const Plan& plan,
                       const CostsFor& costs);

// The plan's GPU; null without one.
const DeviceGroup* gpu_of(const Plan& plan);

// The choice, the runners-up and the predicted times, as a table.
std::string explain(const Choice& choice, std::size_t rows = 8);

}  // namespace regatta
