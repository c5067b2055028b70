// What a GPU is and how fast it is: for platforms. This header needs no CUDA header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace regatta::cuda {

struct DeviceInfo {
  int number = 0;  // as CUDA counts
  std::string name;
  std::string bus_id;  // by which NVML knows it
  std::int64_t memory = 0;
};
// None where there is no driver. Nothing is started on them: they still draw what they draw idle.
std::vector<DeviceInfo> devices();

struct DeviceSpeed {
  double fp32_flops = 0, tf32_flops = 0, bf16_flops = 0;  // a second, in a large matrix product
  double memory_bandwidth = 0;            // bytes a second read and written, copying inside
  double to_device = 0, from_device = 0;  // bytes a second, pinned memory
  double latency = 0;                     // seconds of a copy of a few bytes
};
// Takes about a second.
DeviceSpeed measure(const DeviceInfo& device);

}  // namespace regatta::cuda
