// Reads a binary file front to back with its size known, so that a length found inside the file is
// checked against what is really left before any memory is made for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace regatta {

class FileReader {
 public:
  // Throws InputError that names the file.
  explicit FileReader(const std::filesystem::path& path);

  std::size_t left() const { return left_; }

  // The next `count` bytes; throws InputError that says where the file is cut off.
  std::string take(std::size_t count);

  // The next `count` <= 8 bytes as a little-endian number.
  std::uint64_t take_number(std::size_t count);

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::size_t size_ = 0;
  std::size_t left_ = 0;
};

}  // namespace regatta
