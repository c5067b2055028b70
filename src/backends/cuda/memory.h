// The one owner of a piece of device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace regatta::cuda {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Throws InputError that says `what` needed the memory when the device has no more.
  DeviceMemory(std::size_t bytes, const std::string& what);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A copy of `bytes` on the current device, which is there when this returns; empty if they are.
DeviceMemory on_device(std::span<const std::uint8_t> bytes, const std::string& what);

// Any thread may call these; what they do is done when they return.
struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};
void copy(int device, std::span<const Copy> copies);   // between main memory and the device's
void zero(int device, void* data, std::size_t bytes);  // memory that nobody uses yet

// Offsets inside a workspace: cuDNN and vector loads want whole lines.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace regatta::cuda
