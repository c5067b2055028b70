#include "data/tf_example.h"

#include <cstdint>

namespace regatta {
namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A field of bytes, a text or a message: wire type 2.
std::string field(std::uint64_t number, std::string_view value) {
  return varint(number << 3 | 2) + varint(value.size()) + std::string(value);
}

// An entry of Features' map: { string key = 1; Feature value = 2; }.
std::string entry(std::string_view key, const std::string& feature) {
  return field(1, field(1, key) + field(2, feature));
}

// Feature { BytesList bytes_list = 1; }, Feature { Int64List int64_list = 3; }; a list's values are
// its field 1, numbers packed.
std::string bytes_entry(std::string_view key, std::string_view value) {
  return entry(key, field(1, field(1, value)));
}
std::string number_entry(std::string_view key, std::int64_t value) {
  return entry(key, field(3, field(1, varint(static_cast<std::uint64_t>(value)))));
}

}  // namespace

std::string tf_example(const ExampleImage& image) {
  std::string features = number_entry("image/channels", image.shape.channels()) +
                         number_entry("image/class/label", image.label);
  if (!image.class_name.empty()) features += bytes_entry("image/class/text", image.class_name);
  features += bytes_entry("image/encoded", image.encoded);
  if (!image.file_name.empty()) features += bytes_entry("image/filename", image.file_name);
  features += bytes_entry("image/format", image.format) +
              number_entry("image/height", image.shape.height()) +
              number_entry("image/width", image.shape.width());
  return field(1, features);
}

}  // namespace regatta
