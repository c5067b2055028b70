#include "data/file_reader.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/regular_file.h"

namespace regatta {
namespace fs = std::filesystem;

FileReader::FileReader(const fs::path& path) : name_(path.string()) {
  require_regular_file(path);
  file_.open(path, std::ios::binary);
  const std::string cause = std::strerror(errno);
  if (!file_) throw InputError("cannot read '" + path.string() + "': " + cause);
  std::error_code code;
  size_ = left_ = fs::file_size(path, code);
  if (code) throw InputError("cannot read '" + path.string() + "': " + code.message());
}

FileReader::FileReader(std::string name, std::span<const std::byte> bytes)
    : name_(std::move(name)), bytes_(bytes), size_(bytes.size()), left_(bytes.size()) {}

std::string FileReader::take(std::size_t count) {
  if (count > left_)
    throw InputError("'" + name_ + "' is cut off: " + std::to_string(count) +
                     " bytes expected at byte " + std::to_string(size_ - left_) + ", " +
                     std::to_string(left_) + " are there");
  std::string bytes(count, '\0');
  if (!file_.is_open()) {
    std::memcpy(bytes.data(), bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    left_ -= count;
    return bytes;
  }
  file_.read(bytes.data(), static_cast<std::streamsize>(count));
  if (!file_) throw InputError("cannot read '" + name_ + "': it changed while being read");
  left_ -= count;
  return bytes;
}

std::uint64_t FileReader::take_number(std::size_t count) {
  const std::string bytes = take(count);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace regatta
