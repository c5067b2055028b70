// x where x is positive, slope * x elsewhere. Attributes: "slope" (0.01, at least 0, so that the
// output tells which side it came from).
#include <cmath>
#include <string>

#include "ops/elementwise.h"
#include "ops/ops.h"

namespace regatta {
namespace {

double slope_of(const Node& node) { return node.attributes.real("slope", 0.01); }

Shape infer(const Node& node, Shapes inputs) {
  if (!(slope_of(node) >= 0) || std::isinf(slope_of(node)))
    fail(node, "it needs a 'slope' of 0 or more, found " + std::to_string(slope_of(node)));
  return same_shape(node, inputs);
}

struct LeakyRelu {
  static double value(const Node& node, double x) { return x > 0 ? x : slope_of(node) * x; }
  static double slope(const Node& node, double, double y) { return y > 0 ? 1 : slope_of(node); }
};

}  // namespace

constexpr OpDef leaky_relu_op =
    elementwise_op<LeakyRelu, 2>("leaky_relu", SlopeFrom::output, infer);

}  // namespace regatta
