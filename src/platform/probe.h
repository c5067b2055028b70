// This machine as a platform: what it has, how fast it is, what it draws.
#pragma once

#include <string>
#include <vector>

#include "platform/platform.h"

namespace regatta {

// Cores and memory, with watts and speeds assumed; nothing is measured, so it takes no time.
// `profile`: what costs refer to; empty: assumed speeds.
Platform this_machine(const std::string& profile = {});

struct ProbeResult {
  double core_flops = 0;                    // a second, one core alone, in a small matrix product
  double all_flops = 0;                     // all cores together
  double memory_bandwidth = 0;              // bytes a second, all cores together, adding two arrays
  double copy_bandwidth = 0;                // bytes a second, one core copying
  double idle_watts = 0, active_watts = 0;  // of one core
  bool watts_measured = false;
  std::string watts_remark;  // why they are an estimate
};

struct ProbedGpu {
  std::string name;
  std::int64_t memory = 0;
  double flops = 0;                                    // a second, in a large fp32 matrix product
  double tf32_flops = 0, bf16_flops = 0;               // a second, in large matrix products
  double memory_bandwidth = 0;                         // bytes a second
  double to_device = 0, from_device = 0, latency = 0;  // of copies
  double idle_watts = 0, limit_watts = 0;
  bool watts_measured = false;  // by NVML: drawn idle, and the most it may draw
};
// A GPU's watts before it is given work.
void find_watts(ProbedGpu& gpu, const std::string& bus_id);

// Takes about two seconds.
ProbeResult probe_machine();

// The platform with what was measured. GPUs of one name are a group.
Platform probed_machine(const ProbeResult& found, const std::string& profile = {},
                        const std::vector<ProbedGpu>& gpus = {});

}  // namespace regatta
