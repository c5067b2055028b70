// 1 / (1 + exp(-x)), element by element.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/ops.h"

namespace regatta {
namespace {

struct Sigmoid {
  static double value(const Node&, double x) { return 1 / (1 + std::exp(-x)); }
  static double slope(const Node&, double, double y) { return y * (1 - y); }
};

}  // namespace

constexpr OpDef sigmoid_op = elementwise_op<Sigmoid, 10>("sigmoid", SlopeFrom::output);

}  // namespace regatta
