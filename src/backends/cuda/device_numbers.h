// A few numbers on the device that change from step to step, so that captured graphs follow them.
#pragma once

#include <array>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"

struct CUevent_st;  // CUDA's own; declared here so that its headers are not needed

namespace regatta::cuda {

class DeviceNumbers {
 public:
  DeviceNumbers(Stream stream, std::size_t bytes, const std::string& what);
  ~DeviceNumbers();
  DeviceNumbers(const DeviceNumbers&) = delete;
  DeviceNumbers& operator=(const DeviceNumbers&) = delete;

  const std::byte* data() const { return there_.data(); }
  // Enqueues a copy if `values` are not there already. Never part of a capture.
  void set(const void* values);

 private:
  // Copies on their way read from pinned memory, which must keep until they are done: a ring long
  // enough that whoever writes into it never waits.
  static constexpr std::size_t slots = 16;

  Stream stream_;
  std::size_t bytes_;
  DeviceMemory there_;
  std::vector<std::byte> latest_;
  std::byte* pinned_ = nullptr;
  std::array<CUevent_st*, slots> read_{};  // the copy from this slot is done
  std::size_t next_ = 0;
};

}  // namespace regatta::cuda
