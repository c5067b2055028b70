#include "data/file_reader.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace regatta {
namespace fs = std::filesystem;

FileReader::FileReader(const fs::path& path) : path_(path), file_(path, std::ios::binary) {
  const std::string cause = std::strerror(errno);
  if (!file_) throw InputError("cannot read '" + path.string() + "': " + cause);
  std::error_code code;
  size_ = left_ = fs::file_size(path, code);
  if (code) throw InputError("cannot read '" + path.string() + "': " + code.message());
}

std::string FileReader::take(std::size_t count) {
  if (count > left_)
    throw InputError("'" + path_.string() + "' is cut off: " + std::to_string(count) +
                     " bytes expected at byte " + std::to_string(size_ - left_) + ", " +
                     std::to_string(left_) + " are there");
  std::string bytes(count, '\0');
  file_.read(bytes.data(), static_cast<std::streamsize>(count));
  if (!file_) throw InputError("cannot read '" + path_.string() + "': it changed while being read");
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
