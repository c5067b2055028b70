// Automatic granularity against fixed choices: what measured step times say of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace regatta {

// A plan that was measured: the automatic one, or a fixed choice.
struct GranularityRun {
  std::string name;             // "block x 8"; of the automatic one: what it chose
  double predicted = 0;         // seconds of a step; 0: nobody predicted
  double by_costs = 0;          // predicted seconds of a step, from the costs of operators alone
  std::vector<double> rounds;   // measured seconds of a step, one or two numbers a round
  bool dropped = false;         // hopeless after the first round, and not measured again
  double step_seconds() const;  // the median of its rounds
};

// A model at a size and a batch.
struct GranularityCell {
  std::string model, input;
  std::int64_t batch = 0;
  std::string not_run;  // why, if it was not
  GranularityRun automatic;
  std::optional<GranularityRun> one_worker;
  std::vector<GranularityRun> fixed;
  std::vector<double> taken;  // by others, of the workers' CPU time, in each run that tells

  const GranularityRun* best_fixed() const;  // null: none
  double ratio() const;             // automatic over the best fixed, in time, without its luck
  double one_worker_ratio() const;  // automatic over one worker
  double prediction_error() const;  // of the automatic one: |predicted - measured| / measured
  double cost_error() const;        // error of `by_costs`, as a share
};

struct GranularitySummary {
  std::size_t cells = 0;  // that were run
  double within_5_percent =
      0;  // share of cells: automatic is that near to the best fixed, or faster
  double worst_ratio = 0;
  std::size_t slower_than_one_worker = 0;  // cells, by more than 2%
  double median_error = 0, error_95 = 0;   // of predictions
  double median_cost_error = 0, cost_error_95 = 0;
};

GranularitySummary summarise(const std::vector<GranularityCell>& cells);

std::string granularity_table(const std::vector<GranularityCell>& cells);
std::string granularity_csv(const std::vector<GranularityCell>& cells);
Json granularity_json(const std::vector<GranularityCell>& cells);

}  // namespace regatta
