// min(max(x, 0), 6), element by element. The gradient at exactly 0 and 6 is 0, as in PyTorch.
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace regatta {
namespace {

// A NaN is neither below nor above, so it passes both ways.
struct Relu6 {
  static double value(const Node&, double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
  static double slope(const Node&, double, double y) { return y <= 0 || y >= 6 ? 0 : 1; }
};

}  // namespace

constexpr OpDef relu6_op = elementwise_op<Relu6, 2>("relu6", SlopeFrom::output);

}  // namespace regatta
