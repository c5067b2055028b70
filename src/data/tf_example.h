// Encodes an image as a tf.train.Example, with the features that TensorFlow's input pipelines for
// ImageNet read.
#pragma once

#include <string>
#include <string_view>

#include "base/shape.h"

namespace regatta {

struct ExampleImage {
  std::string_view encoded;                // a whole JPEG or PNG file
  std::string_view format;                 // "JPEG" or "PNG"
  Shape shape;                             // channels x height x width
  std::int64_t label = 0;                  // counted from 0
  std::string_view class_name, file_name;  // left out where empty
};

// The serialized message, its features in alphabetical order: image/channels, image/class/label,
// image/class/text, image/encoded, image/filename, image/format, image/height, image/width.
std::string tf_example(const ExampleImage& image);

}  // namespace regatta
