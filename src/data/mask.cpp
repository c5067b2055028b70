#include "data/mask.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_depth.h"
#include "data/safetensors.h"

namespace regatta {
namespace {

// The metadata of a mask's file.
constexpr const char* model_key = "mask of";
constexpr const char* shapes_key = "shapes";
constexpr const char* fingerprint_key = "fingerprint";

std::size_t bytes_for(std::int64_t count) { return static_cast<std::size_t>((count + 7) / 8); }

Json shapes_of(const Mask& mask) {
  Json shapes = Json::object();
  for (const MaskTensor& tensor : mask.tensors) shapes[tensor.name] = tensor.shape;
  return shapes;
}

// Bits after the last weight, if it does not end a byte.
bool has_stray_bits(const MaskTensor& tensor) {
  const auto used = static_cast<unsigned>(tensor.count() % 8);
  return used != 0 && tensor.bits.back() >> used != 0;
}

class MaskReader {
 public:
  explicit MaskReader(std::string name) : name_(std::move(name)) {}

  Mask read(const TensorFile& file) const {
    if (!file.metadata.contains(model_key))
      fail("its metadata lack 'mask of'; regatta tickets prune makes masks");
    const Json shapes = shapes_in(metadata(file, shapes_key));
    Mask mask;
    mask.model = file.metadata.at(model_key);
    for (const NamedTensor& tensor : file.tensors)
      mask.tensors.push_back(tensor_of(tensor, shapes));
    if (shapes.size() != mask.tensors.size()) fail("it tells shapes of tensors that it lacks");
    if (mask.fingerprint() != metadata(file, fingerprint_key))
      fail("its bits are not those that were written: it was changed or damaged");
    return mask;
  }

 private:
  [[noreturn]] void fail(const std::string& fault) const {
    throw InputError("'" + name_ + "' is not a usable mask of weights: " + fault);
  }

  const std::string& metadata(const TensorFile& file, const char* key) const {
    const auto found = file.metadata.find(key);
    if (found == file.metadata.end()) fail(std::string("its metadata lack '") + key + "'");
    return found->second;
  }

  Json shapes_in(const std::string& text) const {
    Json shapes;
    if (!nests_too_deep(text)) shapes = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!shapes.is_object()) fail("its shapes are not a JSON object");
    return shapes;
  }

  MaskTensor tensor_of(const NamedTensor& stored, const Json& shapes) const {
    const std::string who = "tensor '" + stored.name + "' ";
    const auto found = shapes.find(stored.name);
    if (found == shapes.end() || !found->is_array()) fail(who + "has no shape");
    MaskTensor tensor{.name = stored.name, .shape = {}, .bits = {}};
    std::int64_t count = 1;
    for (const Json& extent : *found) {
      const auto value = extent.is_number_unsigned() ? extent.get<std::int64_t>() : 0;
      if (value < 1 || __builtin_mul_overflow(count, value, &count) ||
          count > std::numeric_limits<std::int64_t>::max() - 7)
        fail(who + "has the shape " + found->dump());
      tensor.shape.push_back(value);
    }
    if (stored.dtype != Dtype::u8 || stored.bytes.size() != bytes_for(count))
      fail(who + "has " + std::to_string(stored.bytes.size()) + " bytes for " +
           std::to_string(count) + " bits");
    tensor.bits.assign(stored.bytes.begin(), stored.bytes.end());
    if (has_stray_bits(tensor)) fail(who + "has bits after its last weight");
    return tensor;
  }

  std::string name_;
};

}  // namespace

std::int64_t MaskTensor::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
}

std::int64_t MaskTensor::kept() const {
  std::int64_t sum = 0;
  for (const std::uint8_t byte : bits) sum += std::popcount(byte);
  return sum;
}

void MaskTensor::set(std::int64_t i, bool stays) {
  std::uint8_t& byte = bits[static_cast<std::size_t>(i / 8)];
  const auto bit = static_cast<std::uint8_t>(1U << (i % 8));
  byte = static_cast<std::uint8_t>(stays ? byte | bit : byte & ~bit);
}

MaskTensor whole_tensor(std::string name, std::vector<std::int64_t> shape) {
  MaskTensor tensor{std::move(name), std::move(shape), {}};
  tensor.bits.assign(bytes_for(tensor.count()), 0xff);
  if (const auto used = static_cast<unsigned>(tensor.count() % 8); used != 0)
    tensor.bits.back() = static_cast<std::uint8_t>((1U << used) - 1);
  return tensor;
}

const MaskTensor* Mask::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, &MaskTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::int64_t Mask::count() const {
  std::int64_t sum = 0;
  for (const MaskTensor& tensor : tensors) sum += tensor.count();
  return sum;
}

std::int64_t Mask::kept() const {
  std::int64_t sum = 0;
  for (const MaskTensor& tensor : tensors) sum += tensor.kept();
  return sum;
}

double Mask::density() const {
  const std::int64_t all = count();
  return all == 0 ? 1 : static_cast<double>(kept()) / static_cast<double>(all);
}

std::string Mask::fingerprint() const {
  // By name: the order of tensors has no say.
  std::map<std::string_view, const MaskTensor*> sorted;
  for (const MaskTensor& tensor : tensors) sorted[tensor.name] = &tensor;
  std::string content = Json(model).dump();
  for (const auto& [name, tensor] : sorted) {
    content += Json{name, tensor->shape}.dump();
    content.append(tensor->bits.begin(), tensor->bits.end());
  }
  return sha256_hex(content).substr(0, 16);
}

void zero_masked(const MaskTensor& mask, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!mask.keeps(static_cast<std::int64_t>(i))) values[i] = 0;
}

void write_mask(const std::filesystem::path& path, const Mask& mask) {
  TensorFile file;
  for (const MaskTensor& tensor : mask.tensors)
    file.tensors.push_back({tensor.name,
                            Dtype::u8,
                            {static_cast<std::int64_t>(tensor.bits.size())},
                            {tensor.bits.begin(), tensor.bits.end()}});
  file.metadata = {{model_key, mask.model},
                   {shapes_key, shapes_of(mask).dump()},
                   {fingerprint_key, mask.fingerprint()}};
  write_safetensors(path, file);
}

Mask read_mask(const std::filesystem::path& path) {
  return MaskReader(path.string()).read(read_safetensors(path));
}

Mask parse_mask(std::span<const std::byte> bytes, const std::string& name) {
  return MaskReader(name).read(parse_safetensors(bytes, name));
}

}  // namespace regatta
