#include "models/onnx_external.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/error.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// Where the message says the numbers are.
struct FileRange {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;  // default: to the end of the file
};

std::uint64_t number_of(const std::string& key, const std::string& text, const std::string& what) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc{} || stop != end)
    throw InputError(what + ": the " + key + " of its values is '" + text.substr(0, 40) +
                     "', which is no number of bytes");
  return number;
}

FileRange place_of(const onnx::TensorProto& tensor, const std::string& what) {
  FileRange place;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") place.offset = number_of("offset", entry.value(), what);
    if (entry.key() == "length") place.length = number_of("length", entry.value(), what);
  }
  return place;
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

// A file from elsewhere must not make us read whatever it names: neither by its path nor through a
// link.
fs::path file_at(const std::string& location, const fs::path& folder, const std::string& what) {
  const std::string told = what + ": its values are in '" + location.substr(0, 200) + "', ";
  const fs::path path(location);
  if (location.empty() || location.find('\0') != std::string::npos || path.is_absolute() ||
      std::find(path.begin(), path.end(), "..") != path.end())
    throw InputError(told + "which is no file of the network's own folder");
  std::error_code code;
  const fs::path root = fs::canonical(folder, code);
  fs::path file = code ? fs::path() : fs::canonical(root / path, code);
  if (code) throw InputError(told + "which cannot be read: " + code.message());
  if (!is_inside(file, root)) throw InputError(told + "which leads out of the network's folder");
  if (!fs::is_regular_file(file, code)) throw InputError(told + "which is no plain file");
  return file;
}

}  // namespace

bool is_external(const onnx::TensorProto& tensor) {
  return tensor.data_location() == onnx::TensorProto::EXTERNAL;
}

std::string external_bytes(const onnx::TensorProto& tensor, std::uint64_t wanted,
                           const fs::path& folder, const std::string& what) {
  if (folder.empty())
    throw InputError(what + ": its values are in another file, and only bytes were given");
  const FileRange place = place_of(tensor, what);
  const fs::path path = file_at(place.location, folder, what);
  const std::string file = "'" + path.string() + "'";
  std::error_code code;
  const std::uint64_t size = fs::file_size(path, code);
  if (code) throw InputError(what + ": cannot read " + file + ": " + code.message());
  if (place.offset > size || place.length.value_or(0) > size - place.offset)
    throw InputError(what + ": its " + std::to_string(wanted) + " bytes should be at byte " +
                     std::to_string(place.offset) + " of " + file + ", which has " +
                     std::to_string(size) + " bytes");
  const std::uint64_t length = place.length.value_or(size - place.offset);
  if (length != wanted)
    throw InputError(what + ": it needs " + std::to_string(wanted) + " bytes, but has " +
                     std::to_string(length) + " in " + file);
  std::string bytes(wanted, '\0');
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(place.offset));
  in.read(bytes.data(), static_cast<std::streamsize>(wanted));
  if (!in) throw InputError(what + ": cannot read " + file);
  return bytes;
}

}  // namespace regatta
