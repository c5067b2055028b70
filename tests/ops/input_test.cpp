#include <gtest/gtest.h>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

using Extents = std::vector<std::int64_t>;

TEST(Input, CopiesTheImages) {
  OpHarness input(input_op, {{"shape", Extents{2, 1, 2}}}, {}, 2);
  input.inputs = {{1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(input.forward(), input.inputs[0]);
}

TEST(Input, HasNoBackward) { EXPECT_EQ(input_op.backward, nullptr); }

TEST(Input, RefusesWhatCannotBe) {
  expect_refused(input_op, {}, {}, "input 'layer': it needs a 'shape' such as 3x32x32");
  expect_refused(input_op, {{"shape", Extents{1, 0, 4}}}, {},
                 "input 'layer': every extent of its shape must be at least 1, found 1x0x4");
}

}  // namespace
}  // namespace regatta
