#include "optimize/rent.h"

#include <algorithm>

namespace regatta::optimize {

double money_for(double hours, double rent_per_hour, double minimum_hours, double value_per_hour,
                 double energy_money) {
  return rent_per_hour * std::max(hours, minimum_hours) + value_per_hour * hours + energy_money;
}

Verdict cheaper(const RunCost& own, const RunCost& offer) {
  if (own.money.high < offer.money.low) return Verdict::own;
  if (offer.money.high < own.money.low) return Verdict::offer;
  return Verdict::cannot_tell;
}

std::optional<double> break_even_runs(const RunCost& own, const RunCost& offer) {
  const double saved = offer.money.value - own.energy_money;
  if (own.purchase <= 0 || saved <= 0) return std::nullopt;
  return own.purchase / saved;
}

}  // namespace regatta::optimize
