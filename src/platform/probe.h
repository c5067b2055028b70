// This machine as a platform: what it has, how fast it is, what it draws.
#pragma once

#include <string>

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
// Takes about two seconds.
ProbeResult probe_machine();

// The platform with what was measured.
Platform probed_machine(const ProbeResult& found, const std::string& profile = {});

}  // namespace regatta
