// Every model of the zoo through plan, tasks and StarPU, held to PyTorch as in parity_test.cpp. The
// fixtures of large ones are made by make parity; without them their cases skip.
#include <gtest/gtest.h>

#include "support/executed_parity.h"

namespace regatta {
namespace {

struct Case {
  const char* model;
  std::vector<std::int64_t> chunks;  // one number: so many equal chunks
  const char* segments;
};

std::string name_of(const Case& c) {
  return std::string(c.model) + (c.chunks.size() == 1 ? "_whole_" : "_uneven_") + c.segments;
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model :
       {"resnet20", "mobilenet_v2", "densenet121", "squeezenet1_1", "inception_v3", "resnet34",
        "resnet56", "resnet101", "alexnet", "vgg11", "vgg16"}) {
    all.push_back({model, {1}, "step"});
    // Its steps are the longest; the others cut batches in every way it would.
    if (model != std::string("inception_v3")) all.push_back({model, {3, 1, 4}, "block"});
  }
  return all;
}

class ZooParity : public testing::TestWithParam<Case> {};

TEST_P(ZooParity, IsAsNearToFloat64AsPyTorchsFloat32) {
  const Case& c = GetParam();
  if (!Fixture::is_there(c.model)) GTEST_SKIP() << "make parity makes this fixture";
  PlanOptions options;
  options.workers = 2;
  options.chunks = c.chunks;
  options.segments = c.segments;
  expect_parity(c.model, options);
}

INSTANTIATE_TEST_SUITE_P(Models, ZooParity, testing::ValuesIn(cases()),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace regatta
