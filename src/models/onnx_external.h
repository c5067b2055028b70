// Numbers of an ONNX tensor that lie in a file beside the network's, as exporters leave those of
// large networks. Internal to the import.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace regatta {

bool is_external(const onnx::TensorProto& tensor);

// The `wanted` bytes of a tensor that is_external. What the file says of their place is not
// trusted: they must lie inside `folder`, the network's own, and be as many as the tensor needs.
// Throws InputError that names the tensor as `what`.
std::string external_bytes(const onnx::TensorProto& tensor, std::uint64_t wanted,
                           const std::filesystem::path& folder, const std::string& what);

}  // namespace regatta
