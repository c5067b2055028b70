// Training through plan, tasks and StarPU against PyTorch's float64, for every way to cut, gather
// and reduce: no further from it than three times PyTorch's own float32.
#include <gtest/gtest.h>

#include "support/executed_parity.h"

namespace regatta {
namespace {

struct Case {
  const char* model;
  std::vector<std::int64_t> chunks;  // one number: so many equal chunks
  const char* segments;
  Reduction reduction;
};

std::string name_of(const Case& c) {
  return std::string(c.model) + (c.chunks.size() == 1 ? "_whole_" : "_uneven_") + c.segments + "_" +
         std::string(reduction_name(c.reduction));
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model : {"tiny", "lenet5", "resnet18", "resnet50"})
    for (const std::vector<std::int64_t>& chunks :
         {std::vector<std::int64_t>{1}, std::vector<std::int64_t>{3, 1, 4}})
      for (const char* segments : {"op", "step"})
        for (const Reduction reduction : {Reduction::slots, Reduction::redux, Reduction::loop})
          all.push_back({model, chunks, segments, reduction});
  return all;
}

class ExecutedParity : public testing::TestWithParam<Case> {};

TEST_P(ExecutedParity, IsAsNearToFloat64AsPyTorchsFloat32) {
  const Case& c = GetParam();
  PlanOptions options;
  options.workers = 2;
  options.chunks = c.chunks;
  options.segments = c.segments;
  options.reduction = c.reduction;
  expect_parity(c.model, options);
}

INSTANTIATE_TEST_SUITE_P(AllPlans, ExecutedParity, testing::ValuesIn(cases()),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace regatta
