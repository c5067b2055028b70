// Masks of parameters as updates read them: one bit for each float of a bucket.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/blueprint.h"

namespace regatta {

// By parameter: bit i % 8 of byte i / 8 is set if value i stays; empty if all stay. Empty
// altogether: nothing is masked.
using ParameterMasks = std::vector<std::vector<std::uint8_t>>;

// Sets the masked ones of a parameter's values to zero.
void zero_masked(const ParameterMasks& masks, ParameterId id, std::span<float> values);

// By bucket; empty for a bucket of which no parameter is masked. Bits between parameters are set,
// and cpu::mask_padding bytes follow the last.
std::vector<std::vector<std::uint8_t>> bucket_masks(const Blueprint& blueprint,
                                                    const ParameterMasks& masks);

}  // namespace regatta
