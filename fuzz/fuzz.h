// What every fuzzer shares. A reader may refuse its input with InputError and in no other way:
// another exception, a sanitizer's finding, gigabytes of memory or a long wait are bugs.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"

namespace regatta::fuzz {

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

// A file in memory with these bytes, for readers that want a path. There is one, used again.
inline std::filesystem::path as_file(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("fuzz", 0);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

// Calls `read`, which may refuse; what libFuzzer wants to be told.
template <class Read>
int may_refuse(const Read& read) {
  try {
    read();
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace regatta::fuzz
