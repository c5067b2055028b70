#include "platform/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/energy.h"

namespace regatta {
namespace {

using testing::HasSubstr;

ProbeResult cores() {
  return {.core_flops = 1e10,
          .all_flops = 4e10,
          .memory_bandwidth = 2e10,
          .copy_bandwidth = 1e10,
          .idle_watts = 2,
          .active_watts = 9,
          .watts_remark = {}};
}

ProbedGpu gpu(const std::string& name, double flops) {
  return {.name = name,
          .memory = std::int64_t{80} << 30,
          .flops = flops,
          .tf32_flops = 4 * flops,
          .bf16_flops = 8 * flops,
          .memory_bandwidth = 3e12,
          .to_device = 5e10,
          .from_device = 4e10,
          .latency = 8e-6,
          .idle_watts = 70,
          .limit_watts = 700,
          .watts_measured = true};
}

TEST(Probe, WithoutGpusTheMachineIsItsCores) {
  const Platform platform = probed_machine(cores());
  ASSERT_EQ(platform.nodes[0].groups.size(), 1u);
  EXPECT_EQ(platform.nodes[0].groups[0].kind, DeviceKind::cpu);
  EXPECT_EQ(platform_from_json(platform.to_json()), platform);
}

TEST(Probe, GpusOfOneNameAreAGroup) {
  const Platform platform =
      probed_machine(cores(), {}, {gpu("Big", 6e13), gpu("Small", 1e13), gpu("Big", 6.1e13)});
  const std::vector<PlatformGroup>& groups = platform.nodes[0].groups;
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[1].name, "gpu");
  EXPECT_EQ(groups[1].kind, DeviceKind::cuda);
  EXPECT_EQ(groups[1].count, 2);
  EXPECT_EQ(groups[1].costs.flops, 6e13);
  EXPECT_EQ(groups[1].watts, (Watts{70, 700}));
  EXPECT_TRUE(groups[1].watts_measured);
  EXPECT_EQ(groups[1].bus->to_device, 5e10);
  EXPECT_EQ(groups[2].name, "gpu2");
  EXPECT_EQ(groups[2].count, 1);
  EXPECT_THAT(platform.remark, HasSubstr("gpu: Big; measured: 60.0 TFLOP/s fp32, 240.0 tf32"));
  // What is written can be read.
  EXPECT_EQ(platform_from_json(platform.to_json()), platform);
}

TEST(Probe, WattsThatNvmlDoesNotTellAreAnEstimate) {
  ProbedGpu unknown = gpu("Big", 6e13);
  find_watts(unknown, "no such bus");
  EXPECT_FALSE(unknown.watts_measured);
  EXPECT_EQ(unknown.limit_watts, assumed_watts_per_gpu);
  EXPECT_GT(unknown.idle_watts, 0);
  EXPECT_LT(unknown.idle_watts, unknown.limit_watts);
  EXPECT_THAT(probed_machine(cores(), {}, {unknown}).remark, HasSubstr("watts estimated"));
}

}  // namespace
}  // namespace regatta
