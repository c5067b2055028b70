#include "optimize/linear_program.h"

#include <algorithm>
#include <cmath>
#include <coin/ClpSimplex.hpp>
#include <coin/CoinPackedMatrix.hpp>
#include <limits>

namespace regatta::optimize {

int LinearProgram::add_variable(const Rational& cost, const Rational& lower,
                                const Rational& upper) {
  cost_.push_back(cost);
  lower_.push_back(lower);
  upper_.push_back(upper);
  return static_cast<int>(cost_.size()) - 1;
}

LinearSolution solve(const LinearProgram& program) {
  const int variables = static_cast<int>(program.cost().size());
  const int rows = static_cast<int>(program.rows().size());
  // The solver's tolerances are absolute, and money is of another size than joules: each variable
  // is scaled by its bounds, each row and the cost by their largest coefficient.
  const auto or_one = [](double scale) { return scale > 0 && std::isfinite(scale) ? scale : 1; };
  std::vector<double> scale, cost, lower, upper;
  double largest = 0;
  for (int j = 0; j < variables; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const double low = program.lower()[at].get_d(), high = program.upper()[at].get_d();
    scale.push_back(or_one(std::max(std::abs(low), std::abs(high))));
    cost.push_back(program.cost()[at].get_d() * scale.back());
    lower.push_back(low / scale.back());
    upper.push_back(high / scale.back());
    largest = std::max(largest, std::abs(cost.back()));
  }
  largest = or_one(largest);
  for (double& each : cost) each /= largest;
  std::vector<int> row_of, column_of;
  std::vector<double> coefficients, at_least, row_scale;
  for (int r = 0; r < rows; ++r) {
    const LinearProgram::Row& row = program.rows()[static_cast<std::size_t>(r)];
    double most = 0;
    for (const auto& [variable, coefficient] : row.terms)
      most =
          std::max(most, std::abs(coefficient.get_d()) * scale[static_cast<std::size_t>(variable)]);
    row_scale.push_back(or_one(most));
    at_least.push_back(row.at_least.get_d() / row_scale.back());
    for (const auto& [variable, coefficient] : row.terms) {
      row_of.push_back(r);
      column_of.push_back(variable);
      coefficients.push_back(coefficient.get_d() * scale[static_cast<std::size_t>(variable)] /
                             row_scale.back());
    }
  }
  CoinPackedMatrix matrix(false, row_of.data(), column_of.data(), coefficients.data(),
                          static_cast<CoinBigIndex>(coefficients.size()));
  matrix.setDimensions(rows, variables);
  ClpSimplex simplex;
  simplex.setLogLevel(0);
  simplex.loadProblem(matrix, lower.data(), upper.data(), cost.data(), at_least.data(), nullptr);
  simplex.dual();
  LinearSolution solution;
  for (int j = 0; j < variables; ++j)
    solution.values.push_back(simplex.primalColumnSolution()[j] *
                              scale[static_cast<std::size_t>(j)]);
  for (int r = 0; r < rows; ++r)
    solution.duals.push_back(simplex.dualRowSolution()[r] * largest /
                             row_scale[static_cast<std::size_t>(r)]);
  return solution;
}

Rational proven_minimum(const LinearProgram& program, std::span<const double> duals) {
  Rational sum = 0;
  std::vector<Rational> left = program.cost();  // cost - y A
  for (std::size_t r = 0; r < program.rows().size() && r < duals.size(); ++r) {
    if (!std::isfinite(duals[r]) || duals[r] <= 0) continue;
    const Rational dual(duals[r]);
    sum += dual * program.rows()[r].at_least;
    for (const auto& [variable, coefficient] : program.rows()[r].terms)
      left[static_cast<std::size_t>(variable)] -= dual * coefficient;
  }
  for (std::size_t j = 0; j < left.size(); ++j)
    sum += left[j] * (left[j] > 0 ? program.lower()[j] : program.upper()[j]);
  return sum;
}

double rounded_down(const Rational& value) {
  const double truncated = value.get_d();  // towards zero
  return Rational(truncated) > value
             ? std::nextafter(truncated, -std::numeric_limits<double>::infinity())
             : truncated;
}

}  // namespace regatta::optimize
