// Data sets of encoded images, decoded as they are read: nothing is kept in memory but where each
// image is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

// Where encoded images come from. Immutable and safe to use from many threads at once.
class ImageStore {
 public:
  virtual ~ImageStore() = default;

  virtual std::int64_t count() const = 0;
  virtual std::int32_t label(std::int64_t index) const = 0;
  virtual std::string name(std::int64_t index) const = 0;  // for messages
  virtual std::int64_t bytes() const = 0;                  // of all; may take a while
  virtual Json identity() const = 0;                       // as Dataset's, without the count

  // The encoded image; throws InputError that says why it cannot be had, not which one it is.
  virtual void fetch(std::int64_t index, std::vector<std::byte>& bytes) const = 0;

  // Throws InputError if not one image is bad but all have gone.
  virtual void require_present() const = 0;
};

// `info` has spec, classes and class_names; the rest is found out. Samples are options.input, or a
// resized crop's size, or the size all images have; colour unless options.input asks for one
// channel. Pixels are normalised as ImageNet's are. Throws InputError if the images' sizes differ
// and nothing says which one is wanted.
std::shared_ptr<const Dataset> encoded_dataset(DatasetInfo info,
                                               std::unique_ptr<const ImageStore> store,
                                               const DatasetOptions& options);

// Mean and deviation of ImageNet's pixels, for 3 channels or 1.
void normalise_as_imagenet(DatasetInfo& info);

}  // namespace regatta
