#include "ops/ops.h"

#include <gtest/gtest.h>

#include "support/error_text.h"

namespace regatta {
namespace {

TEST(Ops, AreFoundByName) {
  EXPECT_EQ(&op_named("conv"), &conv_op);
  EXPECT_EQ(&op_named("global_average_pool"), &global_average_pool_op);
}

TEST(Ops, AnUnknownNameIsOfferedTheNearest) {
  EXPECT_EQ(error_text([] { op_named("batchnorm"); }),
            "operator 'batchnorm' is unknown (did you mean 'batch_norm'?)");
}

}  // namespace
}  // namespace regatta
