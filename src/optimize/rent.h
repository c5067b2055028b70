// Own machines or rented ones: what a run costs on each, and when buying pays.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace regatta::optimize {

// A figure with the interval that its costs leave open.
struct Range {
  double low = 0, value = 0, high = 0;
};

// A run of all images on one platform.
struct RunCost {
  std::string platform;
  Range hours, joules, money;
  double rent_per_hour = 0;  // of all nodes that take part
  double minimum_hours = 0;  // of rent that is paid for
  double purchase = 0;       // of all owned nodes that take part
  double energy_money = 0;   // of the whole run, value; 0: in the rent
};

// Money of a run of so many hours and joules. `value_per_hour`: what owned nodes lose.
double money_for(double hours, double rent_per_hour, double minimum_hours, double value_per_hour,
                 double energy_money);

enum class Verdict { own, offer, cannot_tell };
// Which of both costs less; cannot tell if their intervals overlap.
Verdict cheaper(const RunCost& own, const RunCost& offer);

// Runs after which buying the own machines and paying for their energy costs less than renting for
// each run anew. None: renting stays cheaper, or nothing is bought.
std::optional<double> break_even_runs(const RunCost& own, const RunCost& offer);

}  // namespace regatta::optimize
