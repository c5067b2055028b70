// Random changes to training images: crops, flips, colours. What happens to a sample depends on its
// draw alone, so neither the cut of a batch nor the number of workers has a say in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/shape.h"

namespace regatta {

class Dataset;

// In the order in which they are done. The rules and ranges are torchvision's.
struct Augmentation {
  // A window of the sample's own size, anywhere in the sample padded by so many black pixels.
  int crop_padding = 0;
  // A window of random area and shape, resized to height x width.
  struct ResizedCrop {
    int height = 0, width = 0;
    double least_area = 0.08, most_area = 1.0;  // of the image's
    double least_ratio = 3.0 / 4.0, most_ratio = 4.0 / 3.0;
    bool operator==(const ResizedCrop&) const = default;
  };
  std::optional<ResizedCrop> resized_crop = {};
  bool flip = false;  // left and right are swapped in every second sample
  // Colours are multiplied by up to 1 +- x; the hue is turned by up to +- x of the circle.
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;

  bool any() const { return *this != Augmentation{}; }
  bool jitters() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
  bool operator==(const Augmentation&) const = default;
};

// "crop:4,flip,jitter:0.4/0.4/0.4/0.1,resize-crop:224": in any order, each at most once; "none" or
// "" for nothing. jitter's numbers are brightness, contrast, saturation and hue; one number stands
// for the first three. resize-crop takes a side or HxW, and /AREA for the least area. Throws
// InputError that quotes the piece it does not understand.
Augmentation parse_augmentation(std::string_view text);
std::string augmentation_text(const Augmentation& augmentation);  // parses to the same

Json to_json(const Augmentation& augmentation);
Augmentation augmentation_from_json(const Json& json);  // throws InputError

// `inner` with `augmentation` done to what read(visits) brings; read(indices) brings samples
// without it. Both come in the size of the resized crop or of `input`, if there is one: without a
// random crop samples are then resized and their middle is cut out as evaluation does. Throws
// InputError if the samples cannot be so changed: padded crops and flips take any, colours and
// resizing take bytes.
std::shared_ptr<const Dataset> augmented(std::shared_ptr<const Dataset> inner,
                                         const Augmentation& augmentation,
                                         const std::optional<Shape>& input = {});

}  // namespace regatta
