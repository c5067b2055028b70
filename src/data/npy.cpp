#include "data/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "data/file_reader.h"
#include "data/tensor_bytes.h"

namespace regatta {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

template <class From, class To>
std::string widen(std::string_view bytes) {
  std::string wide(bytes.size() / sizeof(From) * sizeof(To), '\0');
  for (std::size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    // An int8_t is a number here, no character.
    const To widened = static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse)
    std::memcpy(wide.data() + i * sizeof(To), &widened, sizeof(To));
  }
  return wide;
}

struct ElementType {
  std::string_view name;  // NumPy's, without the byte order
  std::size_t bytes;
  Dtype dtype;                             // what it is kept as
  std::string (*widen)(std::string_view);  // null if it is kept as it is
};

constexpr std::array<ElementType, 10> element_types{{
    {"u1", 1, Dtype::u8, nullptr},
    {"i4", 4, Dtype::i32, nullptr},
    {"i8", 8, Dtype::i64, nullptr},
    {"f4", 4, Dtype::f32, nullptr},
    {"f8", 8, Dtype::f64, nullptr},
    {"i1", 1, Dtype::i32, widen<std::int8_t, std::int32_t>},
    {"i2", 2, Dtype::i32, widen<std::int16_t, std::int32_t>},
    {"u2", 2, Dtype::i32, widen<std::uint16_t, std::int32_t>},
    {"u4", 4, Dtype::i64, widen<std::uint32_t, std::int64_t>},
    // A number above 2^63 turns negative, which no use of integers here accepts.
    {"u8", 8, Dtype::i64, widen<std::uint64_t, std::int64_t>},
}};

// The header is a Python dictionary of three entries:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  // Empty if the text is anything else.
  std::optional<Header> parse() {
    Header header;
    if (!eat('{')) return std::nullopt;
    while (!eat('}')) {
      const std::optional<std::string> key = quoted();
      if (!key || !eat(':') || !value_of(*key, header)) return std::nullopt;
      if (!eat(',') && !starts_with('}')) return std::nullopt;
    }
    skip_space();
    if (!rest_.empty() || !header.descr || !header.fortran_order || !header.shape)
      return std::nullopt;
    return header;
  }

 private:
  bool value_of(const std::string& key, Header& header) {
    if (key == "descr") return (header.descr = quoted()).has_value();
    if (key == "fortran_order") return (header.fortran_order = boolean()).has_value();
    if (key == "shape") return (header.shape = tuple()).has_value();
    return false;
  }

  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }

  bool starts_with(char c) {
    skip_space();
    return rest_.starts_with(c);
  }

  bool eat(char c) {
    if (!starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<std::string> quoted() {
    const char quote = starts_with('"') ? '"' : '\'';
    if (!eat(quote)) return std::nullopt;
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<bool> boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    return std::nullopt;
  }

  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> extents;
    if (!eat('(')) return std::nullopt;
    while (!eat(')')) {
      skip_space();
      std::int64_t extent = 0;
      const auto [stop, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (code != std::errc{}) return std::nullopt;
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      extents.push_back(extent);
      if (!eat(',') && !starts_with(')')) return std::nullopt;
    }
    return extents;
  }

  std::string_view rest_;
};

// Byte order and element type of NumPy's "<f4"; null if unknown or big-endian.
const ElementType* element_type(std::string_view descr) {
  if (descr.size() != 3) return nullptr;
  for (const ElementType& type : element_types)
    if (type.name == descr.substr(1) &&
        (descr[0] == '<' || descr[0] == '=' || (descr[0] == '|' && type.bytes == 1)))
      return &type;
  return nullptr;
}

NpyArray read_from(FileReader& file) {
  const auto fail = [&](const std::string& lie) {
    throw InputError("'" + file.name() + "' is not a usable npy file: " + lie);
  };
  if (file.left() < magic.size() || file.take(magic.size()) != magic)
    fail("it does not begin as one; save it with numpy.save");
  const std::uint64_t version = file.take_number(2);  // major, then minor
  const std::uint64_t major = version & 0xff;
  if (major < 1 || major > 3) fail("its version " + std::to_string(major) + " is unknown");
  const std::uint64_t header_bytes = file.take_number(major == 1 ? 2 : 4);
  const std::string text = file.take(static_cast<std::size_t>(header_bytes));
  const std::optional<Header> header = HeaderParser(text).parse();
  if (!header) fail("its header is not one NumPy writes");
  const ElementType* type = element_type(*header->descr);
  if (!type)
    fail("its type is '" + *header->descr +
         "'; convert it with astype to little-endian float32, float64 or an integer");
  if (*header->fortran_order) fail("it is in Fortran order; save numpy.ascontiguousarray of it");

  NpyArray array{.dtype = type->dtype, .shape = *header->shape, .bytes = {}};
  const std::optional<std::size_t> bytes = tensor_bytes(array.shape, type->bytes);
  if (bytes != file.left())
    fail("its shape takes " + (bytes ? std::to_string(*bytes) : "impossibly many") + " bytes, " +
         std::to_string(file.left()) + " are there");
  array.bytes = file.take(*bytes);
  if (type->widen) array.bytes = type->widen(array.bytes);
  return array;
}

}  // namespace

NpyArray read_npy(const std::filesystem::path& path) {
  FileReader file(path);
  return read_from(file);
}

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  FileReader file(name, bytes);
  return read_from(file);
}

void write_npy(const std::filesystem::path& path, const NpyArray& array) {
  const ElementType* type = nullptr;
  for (const ElementType& candidate : element_types)
    if (!candidate.widen && candidate.dtype == array.dtype) type = &candidate;
  if (!type) throw Error("npy files cannot hold bf16");
  if (tensor_bytes(array.shape, array.dtype) != array.bytes.size())
    throw Error("an array does not hold what its shape and type take");

  std::string header = "{'descr': '";
  header += type->bytes == 1 ? '|' : '<';
  header += type->name;
  header += "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : array.shape) header += std::to_string(extent) + ", ";
  header += "), }";
  // NumPy asks for data aligned to 64 bytes; 10 are magic, version and length.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';

  std::string bytes(magic);
  bytes += '\x01';
  bytes += '\x00';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes += array.bytes;
  write_file(path, bytes);
}

}  // namespace regatta
