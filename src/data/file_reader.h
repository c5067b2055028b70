// Reads a binary file, or bytes that came from one, front to back with its size known, so that a
// length found inside is checked against what is really left before any memory is made for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace regatta {

class FileReader {
 public:
  // Throws InputError that names the file.
  explicit FileReader(const std::filesystem::path& path);
  // `name` is for errors; `bytes` must outlive the reader.
  FileReader(std::string name, std::span<const std::byte> bytes);

  const std::string& name() const { return name_; }

  std::size_t left() const { return left_; }

  // The next `count` bytes; throws InputError that says where the file is cut off.
  std::string take(std::size_t count);

  // The next `count` <= 8 bytes as a little-endian number.
  std::uint64_t take_number(std::size_t count);

 private:
  std::string name_;
  std::ifstream file_;
  std::span<const std::byte> bytes_;  // what is left, if not of a file
  std::size_t size_ = 0;
  std::size_t left_ = 0;
};

}  // namespace regatta
