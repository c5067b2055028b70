// Which weights of a network stay: one bit a weight, in memory and on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace regatta {

// One tensor's weights, row-major: bit i % 8 of byte i / 8 is set if weight i stays. Bits after the
// last weight are 0.
struct MaskTensor {
  std::string name;  // the parameter's, as torchvision has it: "layer1.0.conv1.weight"
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bits;

  std::int64_t count() const;  // weights
  std::int64_t kept() const;
  double density() const { return static_cast<double>(kept()) / static_cast<double>(count()); }
  bool keeps(std::int64_t i) const {
    return (bits[static_cast<std::size_t>(i / 8)] >> (i % 8) & 1) != 0;
  }
  void set(std::int64_t i, bool stays);

  bool operator==(const MaskTensor&) const = default;
};

// A tensor of which every weight stays.
MaskTensor whole_tensor(std::string name, std::vector<std::int64_t> shape);

// Parameters without a tensor here are not masked.
struct Mask {
  std::string model;                // which network it is for: model_mark of train/masking.h
  std::vector<MaskTensor> tensors;  // in the order of the network's parameters

  const MaskTensor* find(const std::string& name) const;  // nullptr if absent
  std::int64_t count() const;
  std::int64_t kept() const;
  // The part of all weights that stays, over all tensors; 1 if there are none.
  double density() const;
  // SHA-256 of model, names, shapes and bits: what a recipe knows a mask by.
  std::string fingerprint() const;

  bool operator==(const Mask&) const = default;
};

// Sets masked values to zero; `values` has as many numbers as the tensor.
void zero_masked(const MaskTensor& mask, std::span<float> values);

// A safetensors file: a U8 tensor of bits by parameter; shapes, model and fingerprint in the
// metadata. Atomic, as write_file.
void write_mask(const std::filesystem::path& path, const Mask& mask);

// Throws InputError in one line that names the file and what is wrong: no mask, bits that do not
// fill a shape, a fingerprint that is not the content's.
Mask read_mask(const std::filesystem::path& path);
// The same of bytes in memory; `name` is for errors.
Mask parse_mask(std::span<const std::byte> bytes, const std::string& name);

}  // namespace regatta
