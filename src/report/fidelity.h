// How well simulated step times meet measured ones, over many settings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace regatta {

struct FidelityCell {
  std::string model, input, granularity, placement;
  std::int64_t batch = 0;
  int workers = 1;
  std::string not_run;                  // why, if it was not
  std::vector<double> measured;         // seconds of a typical step, one for each round
  std::vector<double> measured_j = {};  // joules of a step, by round
  std::vector<double> taken = {};       // by others, of the workers' CPU time, where it is known
  double simulated = 0, simulated_j = 0;

  // If someone looked: what of a step a worker is in kernels, what it takes to submit it, and what
  // all workers together take for tasks of each phase, as they typically are.
  struct Pair {
    double measured = 0, simulated = 0;
  };
  Pair kernels = {}, submission = {};
  std::map<std::string, Pair> phases = {};

  double step_s() const;  // the median of the rounds
  double error() const;   // |simulated - measured| / measured
  double spread() const;  // between rounds: (largest - smallest) / median
};

struct FidelitySummary {
  std::size_t cells = 0;  // that were run
  double median_error = 0, worst_error = 0;
  // Kendall's tau over pairs of cells whose measured times differ by more than 3%: how often
  // simulation orders them as measurement does, from -1 to 1. Of all cells, and of pairs of one
  // model, whose order is the harder one.
  double tau = 0, tau_within = 0;
  std::size_t pairs = 0, pairs_within = 0;
};

FidelitySummary summarise(const std::vector<FidelityCell>& cells);
std::string fidelity_table(const std::vector<FidelityCell>& cells);
// A line for each cell whose tasks were looked at; empty if there is none.
std::string fidelity_reasons(const std::vector<FidelityCell>& cells);
// With joules and the spread between rounds, for cells that differ in their placement.
std::string placement_table(const std::vector<FidelityCell>& cells);
std::string fidelity_csv(const std::vector<FidelityCell>& cells);  // a line for each measurement
Json fidelity_json(const std::vector<FidelityCell>& cells);

}  // namespace regatta
