// The choice of granularity: candidate plans are lowered and played with predicted costs; the one
// that is done first is taken.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/make_plan.h"
#include "tasks/play.h"

namespace regatta {

// Costs of the tasks of a plan; the blueprint outlives them.
using CostsFor = std::function<std::unique_ptr<TaskCosts>(const Blueprint&)>;

// What a plan says of task sizes, for people and for --json.
struct Granularity {
  std::string segments;  // as --segments takes it
  std::size_t chunks = 1;
  int team = 1;
  int workers = 1;
};

struct Candidate {
  Plan plan;
  Granularity granularity;
  double step_seconds = 0;  // predicted
  PlayedShares shares;      // likewise
  std::size_t tasks = 0;    // a step
  double known = 0;         // how much of the prediction rests on measurements, from 0 to 1
  double rehearsed = 0;     // seconds that real steps took; 0: it was not tried (rehearsed.h)

  double expected_seconds() const { return rehearsed > 0 ? rehearsed : step_seconds; }
  // Its tasks are so large that the runtime hardly matters.
  bool is_coarse() const { return shares.overhead <= 0.02; }
};

struct Choice {
  std::vector<Candidate> candidates;  // the chosen one first, then by predicted time
  std::size_t tried = 0;              // plans played, or known to be slower without

  const Candidate& best() const { return candidates.front(); }
};

// Fills in what `options` leaves open of segments, chunks, team, lanes and buckets, and uses
// options.workers CPUs or fewer. Throws what make_plan throws.
Choice choose(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
              const CostsFor& costs);

// Shares of several devices in proportion to their predicted speeds alone; nothing if too little of
// those is known.
std::optional<std::vector<std::int64_t>> choose_shares(const Graph& graph, const Recipe& recipe,
                                                       const PlanOptions& options,
                                                       const CostsFor& costs);

// The prediction for one plan.
Candidate predict(const Graph& graph, const Recipe& recipe, const Plan& plan,
                  const CostsFor& costs);

// The choice, the runners-up and the predicted times, as a table.
std::string explain(const Choice& choice, std::size_t rows = 8);

Numbers numbers_of(const Recipe& recipe);

}  // namespace regatta
