#include "data/safetensors.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_depth.h"
#include "data/file_reader.h"
#include "data/tensor_bytes.h"

namespace regatta {
namespace {

// The reference implementation refuses longer headers too.
constexpr std::size_t longest_header = 100'000'000;

constexpr std::array<std::pair<std::string_view, Dtype>, 6> dtype_names{{
    {"U8", Dtype::u8},
    {"I32", Dtype::i32},
    {"I64", Dtype::i64},
    {"BF16", Dtype::bf16},
    {"F32", Dtype::f32},
    {"F64", Dtype::f64},
}};

std::string_view dtype_name(Dtype dtype) {
  for (const auto& [name, known] : dtype_names)
    if (known == dtype) return name;
  throw Error("a tensor's type has no safetensors name");
}

// One tensor as the header announces it.
struct Announced {
  NamedTensor tensor;  // without its bytes
  std::size_t begin = 0, end = 0;
};

class HeaderReader {
 public:
  explicit HeaderReader(std::string name) : name_(std::move(name)) {}

  // The tensors in the order of their data.
  std::vector<Announced> read(const std::string& text,
                              std::map<std::string, std::string>& metadata) {
    const Json header = parse(text);
    std::vector<Announced> announced;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__")
        read_metadata(entry, metadata);
      else
        announced.push_back(read_entry(name, entry));
    }
    std::ranges::stable_sort(announced, {}, &Announced::begin);
    return announced;
  }

  [[noreturn]] void fail(const std::string& lie) const {
    throw InputError("'" + name_ + "' is not a usable safetensors file: " + lie);
  }

 private:
  Json parse(const std::string& text) const {
    // The parser keeps the last of two equal keys without a word; two tensors of one name are a
    // lie.
    std::vector<std::set<std::string>> keys;
    std::string twice;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      keys.resize(std::max(keys.size(), static_cast<std::size_t>(depth) + 2));
      if (event == Json::parse_event_t::object_start)
        keys[static_cast<std::size_t>(depth) + 1].clear();
      if (event == Json::parse_event_t::key &&
          !keys[static_cast<std::size_t>(depth)].insert(value.get<std::string>()).second)
        twice = value.get<std::string>();
      return true;
    };
    if (nests_too_deep(text)) fail("its header is nested too deep");
    Json header;
    try {
      header = Json::parse(text, watch);
    } catch (const Json::exception&) {
      fail("its header is not JSON");
    }
    if (!twice.empty()) fail("'" + twice + "' appears twice in its header");
    if (!header.is_object()) fail("its header is not a JSON object");
    return header;
  }

  void read_metadata(const Json& entry, std::map<std::string, std::string>& metadata) const {
    if (!entry.is_object()) fail("__metadata__ is not a JSON object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail("__metadata__ '" + key + "' is not text");
      metadata[key] = value.get<std::string>();
    }
  }

  Announced read_entry(const std::string& name, const Json& entry) const {
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2)
      fail("tensor '" + name + "' lacks a dtype, a shape or two data_offsets");
    Announced announced;
    announced.tensor.name = name;
    announced.tensor.dtype = read_dtype(name, entry["dtype"].get<std::string>());
    for (const Json& extent : entry["shape"]) {
      // A non-negative number is unsigned to this parser; anything above 2^63 turns negative here.
      const auto value = extent.is_number_unsigned() ? extent.get<std::int64_t>() : -1;
      if (value < 0) fail("tensor '" + name + "' has the extent " + extent.dump());
      announced.tensor.shape.push_back(value);
    }
    for (const Json& offset : entry["data_offsets"])
      if (!offset.is_number_unsigned())
        fail("tensor '" + name + "' has the data offset " + offset.dump());
    announced.begin = entry["data_offsets"][0].get<std::size_t>();
    announced.end = entry["data_offsets"][1].get<std::size_t>();
    return announced;
  }

  Dtype read_dtype(const std::string& name, const std::string& text) const {
    for (const auto& [known, dtype] : dtype_names)
      if (known == text) return dtype;
    fail("tensor '" + name + "' has type " + text + "; save it as F32, F64, BF16, I32, I64 or U8");
  }

  std::string name_;
};

// The format allows neither holes nor overlaps: a tensor begins where the one before it ended.
void require_fit(const HeaderReader& header, const Announced& next, std::size_t position,
                 std::size_t data_bytes) {
  const auto& [tensor, begin, end] = next;
  const std::string culprit =
      "tensor '" + tensor.name + "' at " + std::to_string(begin) + ".." + std::to_string(end);
  if (begin > end || end > data_bytes)
    header.fail(culprit + " is not within " + std::to_string(data_bytes) + " data bytes");
  if (begin < position) header.fail(culprit + " overlaps the one before it");
  if (begin > position)
    header.fail(culprit + " leaves a hole after byte " + std::to_string(position));
  if (tensor_bytes(tensor.shape, tensor.dtype) != end - begin)
    header.fail(culprit + " is not what its shape and type take");
}

TensorFile read_from(FileReader& file) {
  HeaderReader header(file.name());
  const std::uint64_t header_bytes = file.take_number(8);
  if (header_bytes > longest_header || header_bytes > file.left())
    header.fail("its header claims " + std::to_string(header_bytes) + " bytes, " +
                std::to_string(file.left()) + " are there");
  TensorFile result;
  std::vector<Announced> announced =
      header.read(file.take(static_cast<std::size_t>(header_bytes)), result.metadata);

  const std::size_t data_bytes = file.left();
  std::size_t position = 0;
  for (Announced& next : announced) {
    require_fit(header, next, position, data_bytes);
    next.tensor.bytes = file.take(next.end - next.begin);
    position = next.end;
    result.tensors.push_back(std::move(next.tensor));
  }
  if (position != data_bytes)
    header.fail(std::to_string(data_bytes - position) + " bytes follow its last tensor");
  return result;
}

}  // namespace

const NamedTensor* TensorFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  FileReader file(path);
  return read_from(file);
}

TensorFile parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  FileReader file(name, bytes);
  return read_from(file);
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  Json header = Json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::size_t position = 0;
  for (const NamedTensor& tensor : file.tensors) {
    if (tensor_bytes(tensor.shape, tensor.dtype) != tensor.bytes.size())
      throw Error("tensor '" + tensor.name + "' does not hold what its shape and type take");
    if (header.contains(tensor.name)) throw Error("two tensors are named '" + tensor.name + "'");
    header[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {position, position + tensor.bytes.size()}}};
    position += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that mapped data is aligned

  std::string bytes;
  bytes.reserve(8 + text.size() + position);
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i));
  bytes += text;
  for (const NamedTensor& tensor : file.tensors) bytes += tensor.bytes;
  write_file(path, bytes);
}

}  // namespace regatta
