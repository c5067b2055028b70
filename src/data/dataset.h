// data/: where samples come from: data sets by name or file, fetching and checking them, and the
// tensor files (npy, safetensors) that carry samples and weights. It knows no graphs and no tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "data/augment.h"

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
  // Images are made up in whatever size DatasetOptions::input asks for.
  bool any_size = false;
  std::vector<std::string> class_names = {};  // by label; empty if the data does not tell
  std::int64_t bytes = 0;                     // as stored; 0 for data that is made up
};

// A sample's turn in training: which one, and the number its random changes are drawn from.
struct Visit {
  std::int64_t index = 0;
  std::uint64_t draw = 0;
};

// Samples that could not be read and were replaced.
struct SkippedSamples {
  std::int64_t count = 0;                  // different ones, since the data was opened
  std::vector<std::string> first;          // what and why, of those with the lowest indices
  std::vector<std::int64_t> indices = {};  // of all, ascending
};

// Immutable and safe to read from many threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  const DatasetInfo& info() const { return info_; }

  // Copies the samples at `indices`, one after another, NCHW and in info().dtype, and their labels.
  virtual void read(std::span<const std::int64_t> indices, std::byte* samples,
                    std::int32_t* labels) const = 0;

  // The same for training: with the augmentation the data was opened with, if any.
  virtual void read(std::span<const Visit> visits, std::byte* samples, std::int32_t* labels) const;

  // The label of a sample, without decoding it where the data tells labels apart from samples.
  virtual std::int32_t label(std::int64_t index) const;

  // The image file at `index` as it is stored, JPEG or PNG, and its label. One that cannot be
  // decoded is replaced as read() replaces it. Returns the index of the image that was read;
  // nothing if the data holds no encoded images.
  virtual std::optional<std::int64_t> read_encoded(std::int64_t index,
                                                   std::vector<std::byte>& image,
                                                   std::int32_t* label) const;

  // The order in which an epoch visits all samples: epoch_order, unless the way the data is stored
  // makes another one much faster.
  virtual std::vector<std::int64_t> order(std::uint64_t seed, std::int64_t epoch,
                                          bool shuffle) const;

  virtual SkippedSamples skipped() const { return {}; }
  virtual std::string sample_name(std::int64_t index) const;  // for messages: a file, a record
  virtual std::int64_t bytes() const { return 0; }  // as stored; 0 for data that is made up

  // Identifies the samples independently of their path: their count, and those checksums of names,
  // sizes or contents that are cheap to get, each under its own key. Made-up data: its spec.
  virtual Json identity() const { return {{"spec", info_.spec}}; }

 protected:
  void require_index(std::int64_t index) const;  // throws Error unless it is in [0, count)

  DatasetInfo info_;
};

struct DatasetOptions {
  Split split = Split::train;
  std::uint64_t seed = 0;
  // The sample wanted of data that has to be decoded, comes in one size for many uses, or is made
  // up in any size. Default: what the data has, if that is one size.
  std::optional<Shape> input = {};
  // What an image's shorter side is resized to before its middle is cut out; 0: 256/224 of what is
  // cut out.
  int resize_to = 0;
  Augmentation augmentation = {};
  // A sample that cannot be read ends the run. Otherwise the next one that can takes its place.
  bool strict = false;
  // Encoded images are taken as they are, by read_encoded: their sizes may differ, and
  // info().sample has the size of the first one.
  bool undecoded = false;
  // Image files: one that cannot be read becomes a black image, and skipped() lists it.
  bool blank_unreadable = false;
};

// `mnist`, `fashion-mnist`, `idx:IMAGES,LABELS`, `npy:X.npy,Y.npy` (each with
// TEST_IMAGES,TEST_LABELS behind, if there are any), `cifar10:DIR`, `cifar100:DIR`, `folder:DIR`,
// `tfrecord:GLOB`, `shards:DIR`, `synth:CxHxW/CLASSES@COUNT`, `cifar10-synth`, `imagenet-synth`,
// `digits-synth`. Synthetic sets draw from `seed`; their test split shares the classes' patterns
// but no sample. Throws InputError that names what is wrong and the way out.
std::shared_ptr<const Dataset> open_dataset(const std::string& spec, const DatasetOptions& options);

inline std::shared_ptr<const Dataset> open_dataset(const std::string& spec, Split split,
                                                   std::uint64_t seed) {
  return open_dataset(spec, DatasetOptions{.split = split, .seed = seed});
}

// How many bytes opening `spec` reads into memory, as far as is known before: the sizes of npy and
// idx files. Sets of a known size, which is small, and those that stay in their files count
// nothing.
std::int64_t bytes_read_into_memory(const std::string& spec, Split split);

// The spec with absolute paths: it means the same wherever the program is started.
std::string absolute_spec(const std::string& spec);

// The specs that are plain names, for help texts and suggestions.
const std::vector<std::string>& dataset_names();

// The order in which an epoch visits `count` samples: a permutation from (seed, epoch), or 0, 1,
// ...
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch,
                                      bool shuffle);

}  // namespace regatta
