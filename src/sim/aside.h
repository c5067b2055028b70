// Runs a function in a child process and brings its bytes back.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace regatta::sim {

// What the function gives. Throws InputError or Error with the child's message, or Error with how
// it ended.
std::string run_aside(const std::function<std::string()>& function);

// Plain values as bytes; the reader asks in the same order.
class ByteWriter {
 public:
  template <class T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::uint64_t count = values.size();
    bytes_.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes_.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  std::vector<T> get() {
    std::uint64_t count = 0;
    read(&count, sizeof count);
    std::vector<T> values(count);
    read(values.data(), count * sizeof(T));
    return values;
  }

 private:
  void read(void* to, std::size_t size) {
    if (size > bytes_.size()) throw Error("the simulation's result breaks off");
    if (size > 0) std::memcpy(to, bytes_.data(), size);  // an empty vector may have no address
    bytes_.remove_prefix(size);
  }
  std::string_view bytes_;
};

}  // namespace regatta::sim
