// tfrecord:GLOB: images in TensorFlow's record files, as tf.train.Example messages that
// TensorFlow's and Spark's writers make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

// What a tf.train.Example says of an image: the encoded image under image/encoded, image, image_raw
// or jpeg, the label (int64) under image/class/label, label or class. Whatever else it holds is
// skipped.
struct ImageExample {
  std::span<const std::byte> image;  // part of the bytes it was parsed from; empty if there is none
  std::optional<std::int64_t> label;
};
// Throws InputError when the bytes are no such message.
ImageExample parse_image_example(std::span<const std::byte> bytes);

// A record's payload within its file.
struct RecordPlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
// All records of a file in memory, with the checksums of lengths and payloads; throws InputError
// that names `name` and the byte where it stops making sense.
std::vector<RecordPlace> parse_tfrecord(std::span<const std::byte> bytes, const std::string& name);

// How many records a file has, by their lengths alone; throws InputError as parse_tfrecord does.
std::int64_t count_tfrecords(const std::string& path);

// A file's record: an 8-byte length, its checksum, the payload, its checksum.
std::string tfrecord_of(std::string_view payload);

// `globs` is GLOB or GLOB,TEST_GLOB; the files are taken in the order of their names. Where each
// record is and its label are found by a first pass over the files that skips the images.
std::shared_ptr<const Dataset> tfrecord_dataset(const std::string& spec, const std::string& globs,
                                                const DatasetOptions& options);

}  // namespace regatta
