// data/: where samples come from: data sets by name or file, fetching and checking them, and the
// tensor files (npy, safetensors) that carry samples and weights. It knows no graphs and no tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace regatta {

enum class Split { train, test };

struct DatasetInfo {
  std::string spec;  // as the user wrote it
  Shape sample;      // C x H x W
  std::int64_t count = 0;
  int classes = 0;
  Dtype dtype = Dtype::u8;  // u8 or f32: samples stay as stored until a kernel uses them
  // What the network sees of a stored x in channel c: (x * scale - mean[c]) / deviation[c];
  // scale is 1/255 for u8 and 1 for f32. Both lists have one entry per channel.
  float scale = 1.0f;
  std::vector<float> mean, deviation;
  // The spec names no test samples of its own: both splits are the same samples, and an accuracy on
  // them is not a test.
  bool splits_coincide = false;
};

// Immutable and safe to read from many threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  const DatasetInfo& info() const { return info_; }

  // Copies the samples at `indices`, one after another, NCHW and in info().dtype, and their labels.
  virtual void read(std::span<const std::int64_t> indices, std::byte* samples,
                    std::int32_t* labels) const = 0;

 protected:
  void require_index(std::int64_t index) const;  // throws Error unless it is in [0, count)

  DatasetInfo info_;
};

// `mnist`, `fashion-mnist`, `idx:IMAGES,LABELS`, `npy:X.npy,Y.npy` (each with
// TEST_IMAGES,TEST_LABELS behind, if there are any), `synth:CxHxW/CLASSES@COUNT`, `cifar10-synth`,
// `imagenet-synth`, `digits-synth`. Synthetic sets draw from `seed`; their test split shares the
// classes' patterns but no sample. Throws InputError that names what is wrong and the way out.
std::shared_ptr<const Dataset> open_dataset(const std::string& spec, Split split,
                                            std::uint64_t seed);

// The specs that are plain names, for help texts and suggestions.
const std::vector<std::string>& dataset_names();

// The order in which an epoch visits `count` samples: a permutation from (seed, epoch), or 0, 1,
// ...
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch,
                                      bool shuffle);

}  // namespace regatta
