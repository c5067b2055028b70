// The spine's parity cases on a GPU, alone and beside CPU workers, in fp32 without TF32. Skipped
// where there is no GPU.
#include <gtest/gtest.h>

#include "support/executed_parity.h"
#include "support/gpu_here.h"

namespace regatta {
namespace {

struct Case {
  const char* model;
  std::vector<DeviceKind> devices;
  std::vector<std::int64_t> cut;  // chunks of the one device, or shares of both
  const char* segments;
  Reduction reduction;
  Layout layout;
};

std::string name_of(const Case& c) {
  return std::string(c.model) +
         (c.devices.size() > 1 ? "_cpu_and_gpu_"
          : c.cut.size() > 1   ? "_uneven_"
                               : "_whole_") +
         c.segments + "_" + std::string(reduction_name(c.reduction)) + "_" +
         std::string(layout_name(c.layout));
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

std::vector<Case> cases() {
  const std::vector<DeviceKind> gpu{DeviceKind::cuda}, both{DeviceKind::cpu, DeviceKind::cuda};
  std::vector<Case> all;
  for (const char* model : {"tiny", "lenet5", "resnet18", "resnet50"})
    for (const char* segments : {"op", "step"}) {
      for (const Reduction reduction : {Reduction::slots, Reduction::loop, Reduction::redux}) {
        all.push_back({model, gpu, {1}, segments, reduction, Layout::nhwc});
        all.push_back({model, gpu, {3, 1, 4}, segments, reduction, Layout::nhwc});
        all.push_back({model, both, {3, 5}, segments, reduction, Layout::nhwc});
      }
      all.push_back({model, gpu, {1}, segments, Reduction::slots, Layout::nchw});
    }
  return all;
}

class CudaParity : public testing::TestWithParam<Case> {};

TEST_P(CudaParity, IsAsNearToFloat64AsPyTorchsFloat32) {
  if (!gpu_here()) GTEST_SKIP() << "no GPU here";
  const Case& c = GetParam();
  PlanOptions options;
  options.workers = 2;
  options.devices = c.devices;
  if (c.devices.size() > 1)
    options.shares = c.cut;
  else
    options.chunks = c.cut;
  options.segments = c.segments;
  options.reduction = c.reduction;
  options.gpu_layout = c.layout;
  const ExecutedRun run = expect_parity(c.model, options);
  // Ring buffers alternate between two addresses: each is captured once, after one eager run.
  EXPECT_EQ(run.captures_after_warm_up, 0u);
}

INSTANTIATE_TEST_SUITE_P(AllPlans, CudaParity, testing::ValuesIn(cases()),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace regatta
