// Small linear programs: solved in floating point, their minimum proven in exact arithmetic.
#pragma once

#include <gmpxx.h>

#include <span>
#include <utility>
#include <vector>

namespace regatta::optimize {

using Rational = mpq_class;

// Minimise cost * x, subject to every row being at least so much, and lower <= x <= upper. All
// numbers are exact, all bounds finite.
class LinearProgram {
 public:
  struct Row {
    std::vector<std::pair<int, Rational>> terms;  // variable and coefficient
    Rational at_least;
  };

  int add_variable(const Rational& cost, const Rational& lower, const Rational& upper);
  void add_row(std::vector<std::pair<int, Rational>> terms, const Rational& at_least) {
    rows_.push_back({std::move(terms), at_least});
  }

  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Rational>& cost() const { return cost_; }
  const std::vector<Rational>& lower() const { return lower_; }
  const std::vector<Rational>& upper() const { return upper_; }

 private:
  std::vector<Row> rows_;
  std::vector<Rational> cost_, lower_, upper_;
};

// As the solver says it, in floating point: nothing of it is proven.
struct LinearSolution {
  std::vector<double> values;  // by variable
  std::vector<double> duals;   // by row
};
LinearSolution solve(const LinearProgram& program);

// A number that no feasible x costs less than, whatever `duals` are: for y >= 0 and a feasible x,
//   cost * x = y * (A x) + (cost - y A) * x >= y * at_least + sum over j of the least of
//   (cost - y A)_j * x_j between x_j's bounds.
// Negative and missing duals count as 0. The better they are, the higher the number.
Rational proven_minimum(const LinearProgram& program, std::span<const double> duals);

// The largest double that is not above it.
double rounded_down(const Rational& value);

}  // namespace regatta::optimize
