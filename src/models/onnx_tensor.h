// The constants of an ONNX file, unpacked and checked. Internal to the import.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// Numbers of a tensor: floats of float and double ones, integers of the others.
struct OnnxTensor {
  std::vector<std::int64_t> extents;
  bool whole = false;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  std::size_t size() const { return whole ? integers.size() : floats.size(); }
  std::string text() const;  // "64x3x7x7"
};

// Throws InputError that names the tensor as `what`. Numbers outside the file are looked for in
// `folder`.
OnnxTensor unpack(const onnx::TensorProto& tensor, const std::string& what,
                  const std::filesystem::path& folder);

}  // namespace regatta
