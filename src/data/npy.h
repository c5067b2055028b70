// NumPy's array files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace regatta {

struct NpyArray {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// Versions 1 to 3, C order, little-endian u1, i4, i8, f4, f8; the other integers are widened to the
// nearest of i4 and i8 that holds them. Throws InputError otherwise.
NpyArray read_npy(const std::filesystem::path& path);
// The same of bytes in memory; `name` is for errors.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name);
void write_npy(const std::filesystem::path& path, const NpyArray& array);

}  // namespace regatta
