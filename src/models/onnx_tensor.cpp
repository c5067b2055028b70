#include "models/onnx_tensor.h"

#include <cstring>

#include "base/error.h"
#include "models/onnx_external.h"

namespace regatta {
namespace {

// Where a tensor's numbers come from.
struct Source {
  const onnx::TensorProto& tensor;
  const std::string& what;
  const std::filesystem::path& folder;
  std::size_t count;
};

// Takes what the message holds as T's: packed as bytes, here or in another file, or listed one by
// one in `listed`.
template <class T, class Listed, class Out>
bool take(const Source& from, const Listed& listed, std::vector<Out>& out) {
  const bool elsewhere = is_external(from.tensor);
  if (elsewhere || from.tensor.has_raw_data()) {
    std::string read;
    if (elsewhere)
      read = external_bytes(from.tensor, from.count * sizeof(T), from.folder, from.what);
    const std::string& bytes = elsewhere ? read : from.tensor.raw_data();
    if (bytes.size() != from.count * sizeof(T)) return false;
    out.resize(from.count);
    for (std::size_t i = 0; i < from.count; ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = static_cast<Out>(value);
    }
    return true;
  }
  if (static_cast<std::size_t>(listed.size()) != from.count) return false;
  for (const auto value : listed) out.push_back(static_cast<Out>(value));
  return true;
}

}  // namespace

std::string OnnxTensor::text() const {
  std::string out;
  for (const std::int64_t extent : extents)
    out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out.empty() ? "a single number" : out;
}

OnnxTensor unpack(const onnx::TensorProto& tensor, const std::string& what,
                  const std::filesystem::path& folder) {
  const auto fail = [&](const std::string& fault) { throw InputError(what + ": " + fault); };
  if (tensor.dims_size() > 8) fail("it has more than 8 extents");
  OnnxTensor out;
  double elements = 1;
  for (const std::int64_t extent : tensor.dims()) {
    if (extent < 0) fail("it has an extent of " + std::to_string(extent));
    out.extents.push_back(extent);
    elements *= static_cast<double>(extent);
  }
  // More than any network has; and the count must not overflow.
  if (elements > 1e10) fail("it is too large: " + out.text());
  const auto count = static_cast<std::size_t>(elements);
  const Source from{tensor, what, folder, count};
  bool whole = true, complete = false;
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      whole = false;
      complete = take<float>(from, tensor.float_data(), out.floats);
      break;
    case onnx::TensorProto::DOUBLE:
      whole = false;
      complete = take<double>(from, tensor.double_data(), out.floats);
      break;
    case onnx::TensorProto::INT64:
      complete = take<std::int64_t>(from, tensor.int64_data(), out.integers);
      break;
    case onnx::TensorProto::INT32:
      complete = take<std::int32_t>(from, tensor.int32_data(), out.integers);
      break;
    case onnx::TensorProto::BOOL:
      complete = take<std::uint8_t>(from, tensor.int32_data(), out.integers);
      break;
    default:
      fail("its type is none of float, double, int64, int32 and bool");
  }
  out.whole = whole;
  if (!complete)
    fail("it does not hold the " + std::to_string(count) + " numbers of " + out.text());
  return out;
}

}  // namespace regatta
