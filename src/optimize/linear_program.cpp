#include "optimize/linear_program.h"

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
  const auto doubles = [](const std::vector<Rational>& values) {
    std::vector<double> near;
    for (const Rational& value : values) near.push_back(value.get_d());
    return near;
  };
  std::vector<int> row_of, column_of;
  std::vector<double> coefficients, at_least;
  for (int r = 0; r < rows; ++r) {
    const LinearProgram::Row& row = program.rows()[static_cast<std::size_t>(r)];
    at_least.push_back(row.at_least.get_d());
    for (const auto& [variable, coefficient] : row.terms) {
      row_of.push_back(r);
      column_of.push_back(variable);
      coefficients.push_back(coefficient.get_d());
    }
  }
  CoinPackedMatrix matrix(false, row_of.data(), column_of.data(), coefficients.data(),
                          static_cast<CoinBigIndex>(coefficients.size()));
  matrix.setDimensions(rows, variables);
  ClpSimplex simplex;
  simplex.setLogLevel(0);
  simplex.loadProblem(matrix, doubles(program.lower()).data(), doubles(program.upper()).data(),
                      doubles(program.cost()).data(), at_least.data(), nullptr);
  simplex.dual();
  return {{simplex.primalColumnSolution(), simplex.primalColumnSolution() + variables},
          {simplex.dualRowSolution(), simplex.dualRowSolution() + rows}};
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
