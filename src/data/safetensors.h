// Named tensors in one file, in Hugging Face's safetensors form: how weights travel to and from
// PyTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace regatta {

struct NamedTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

struct TensorFile {
  std::vector<NamedTensor> tensors;  // in the order of the data
  std::map<std::string, std::string> metadata;

  const NamedTensor* find(const std::string& name) const;  // nullptr if absent
};

// Throws InputError that names the file and the lie: header too long, offsets outside the file or
// overlapping, sizes that do not match shape and type, unknown types.
TensorFile read_safetensors(const std::filesystem::path& path);
// The same of bytes in memory; `name` is for errors.
TensorFile parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

// Atomic, as write_file.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace regatta
