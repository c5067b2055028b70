// Which part of an image becomes a sample, and in which size: chosen before anything is decoded.
#pragma once

#include <cstdint>

#include "data/augment.h"
#include "data/resize.h"

namespace regatta {

struct PixelSize {
  int height = 0, width = 0;
  bool operator==(const PixelSize&) const = default;
};

// A box is cut out of the image, resized, and a window is cut out of that.
struct Framing {
  int top = 0, left = 0;  // of the box
  PixelSize box;
  PixelSize resized;
  int window_top = 0, window_left = 0;
  PixelSize window;

  // For a source that is eighths/8 of the size of the image.
  ResizeAxis rows(int eighths = 8) const;
  ResizeAxis columns(int eighths = 8) const;

  // Nothing is resized: the window is part of the image.
  bool plain() const { return box == resized; }
};

// An image of the target's size is taken as it is. Any other is resized so that its shorter side is
// 256/224 of the target's (torchvision's Resize(256) before CenterCrop(224)); for a target that is
// not square, so that it just covers 256/224 of it; and the middle is cut out. `resize_to` sets
// another length than 256/224 of the target's shorter side.
Framing evaluation_framing(PixelSize image, PixelSize target, int resize_to = 0);

// torchvision's RandomResizedCrop: ten tries, then the largest middle of a permitted shape.
Framing resized_crop_framing(PixelSize image, const Augmentation::ResizedCrop& crop,
                             std::uint64_t draw);

}  // namespace regatta
