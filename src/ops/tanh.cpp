// The hyperbolic tangent, element by element.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/ops.h"

namespace regatta {
namespace {

struct Tanh {
  static double value(const Node&, double x) { return std::tanh(x); }
  static double slope(const Node&, double, double y) { return 1 - y * y; }
};

}  // namespace

constexpr OpDef tanh_op = elementwise_op<Tanh, 10>("tanh", SlopeFrom::output);

}  // namespace regatta
