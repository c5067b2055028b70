// Changes of colour by torchvision's formulas for images of bytes, on C x H x W samples in place. A
// sample of one channel has no saturation and no hue to change.
#pragma once

#include <cstdint>

#include "base/shape.h"

namespace regatta {

// x -> factor x
void adjust_brightness(const Shape& sample, double factor, std::uint8_t* pixels);
// x -> factor x + (1 - factor) mean of the grey image
void adjust_contrast(const Shape& sample, double factor, std::uint8_t* pixels);
// x -> factor x + (1 - factor) grey
void adjust_saturation(const Shape& sample, double factor, std::uint8_t* pixels);
// Turns the hue by `turn` of the circle, from -0.5 to 0.5.
void adjust_hue(const Shape& sample, double turn, std::uint8_t* pixels);

}  // namespace regatta
