// x times the normal distribution's share below x, element by element. Attributes: "tanh" (0):
// the share by its usual approximation with a hyperbolic tangent instead of exactly.
#include <cmath>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/ops.h"

namespace regatta {
namespace {

constexpr double root_half = std::numbers::sqrt2 / 2;
// sqrt(2 / pi) and the cubic term of the approximation.
constexpr double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double cubic = 0.044715;

struct Gelu {
  static double value(const Node& node, double x) {
    if (node.attributes.flag("tanh"))
      return 0.5 * x * (1 + std::tanh(scale * (x + cubic * x * x * x)));
    return 0.5 * x * (1 + std::erf(x * root_half));
  }
  static double slope(const Node& node, double x, double) {
    if (node.attributes.flag("tanh")) {
      const double share = std::tanh(scale * (x + cubic * x * x * x));
      const double inner = scale * (1 + 3 * cubic * x * x);
      return 0.5 * (1 + share) + 0.5 * x * (1 - share * share) * inner;
    }
    const double density = 0.5 * scale * std::exp(-0.5 * x * x);
    return 0.5 * (1 + std::erf(x * root_half)) + x * density;
  }
};

}  // namespace

constexpr OpDef gelu_op = elementwise_op<Gelu, 20>("gelu", SlopeFrom::input);

}  // namespace regatta
