// The idx files of MNIST and its relatives: big-endian extents, then bytes; often gzipped.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "data/npy.h"

namespace regatta {

// Unsigned bytes of any rank, plain or gzipped whatever the name says. Throws InputError that names
// the file and the lie: wrong magic, other types, too few or too many bytes, a damaged gzip stream.
NpyArray read_idx(const std::filesystem::path& path);
// The same of bytes in memory; `name` is for errors.
NpyArray parse_idx(std::span<const std::byte> bytes, const std::string& name);

// Plain. The array is u8; each extent fits 32 bits.
void write_idx(const std::filesystem::path& path, const NpyArray& array);

}  // namespace regatta
