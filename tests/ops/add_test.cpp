#include <gtest/gtest.h>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(Add, GradientsMatchDifferences) {
  OpHarness(add_op, {}, {Shape{3, 5, 3}, Shape{3, 5, 3}}, 2).expect_gradients_match_differences();
}

TEST(Add, RefusesWhatCannotBe) {
  expect_refused(add_op, {}, {Shape{3, 4, 4}, Shape{4, 4, 3}},
                 "add 'layer': its inputs must have one shape, found 3x4x4 and 4x4x3");
  expect_refused(add_op, {}, {Shape{3}}, "add 'layer': it takes 2 inputs, found 1");
}

}  // namespace
}  // namespace regatta
