#include "ops/ops.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace regatta {
namespace {

TEST(Ops, AreFoundByName) {
  EXPECT_EQ(&op_named("conv"), &conv_op);
  EXPECT_EQ(&op_named("global_average_pool"), &global_average_pool_op);
}

TEST(Ops, AnUnknownNameIsOfferedTheNearest) {
  try {
    op_named("batchnorm");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "operator 'batchnorm' is unknown (did you mean 'batch_norm'?)");
  }
}

}  // namespace
}  // namespace regatta
