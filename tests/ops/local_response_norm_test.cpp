#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(LocalResponseNorm, GradientsMatchDifferences) {
  for (const std::int64_t size : {1, 2, 5, 12})
    OpHarness(local_response_norm_op, {{"size", size}, {"alpha", 0.5}, {"k", 1.5}},
              {Shape{7, 3, 2}}, 2)
        .expect_gradients_match_differences();
}

TEST(LocalResponseNorm, AnEvenNeighbourhoodReachesOneFurtherBack) {
  OpHarness norm(local_response_norm_op, {{"size", 2}, {"alpha", 2.0}, {"beta", 1.0}},
                 {Shape{3, 1, 1}}, 1);
  norm.inputs[0] = {1, 2, 3};
  EXPECT_EQ(norm.forward(), (std::vector<double>{1.0 / 2, 2.0 / 6, 3.0 / 14}));
}

TEST(LocalResponseNorm, RefusesWhatCannotBe) {
  expect_refused(local_response_norm_op, {}, {Shape{3, 2, 2}},
                 "local_response_norm 'layer': it needs 'size' of at least 1, found 0");
  expect_refused(local_response_norm_op, {{"size", 5}, {"k", 0.0}}, {Shape{3, 2, 2}},
                 "local_response_norm 'layer': it needs 'alpha' of at least 0, 'k' above 0 and a "
                 "finite 'beta', found 0.000100, 0.000000 and 0.750000");
}

}  // namespace
}  // namespace regatta
