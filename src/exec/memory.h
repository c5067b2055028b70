// Memory we own: page-aligned, zeroed, huge pages where they help.
#pragma once

#include <cstddef>
#include <utility>

namespace regatta {

// The copies of a buffer; null where it has none.
struct BufferData {
  std::byte* host = nullptr;
  std::byte* device = nullptr;
};

class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::size_t bytes);  // throws InputError when the machine has no more
  ~HostMemory();
  HostMemory(HostMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
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

}  // namespace regatta
