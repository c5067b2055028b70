#include "exec/bucket_masks.h"

#include "backends/cpu/optimizer.h"
#include "base/error.h"

namespace regatta {

void zero_masked(const ParameterMasks& masks, ParameterId id, std::span<float> values) {
  if (masks.empty() || masks[id.value].empty()) return;
  const std::vector<std::uint8_t>& bits = masks[id.value];
  if (bits.size() != (values.size() + 7) / 8) throw Error("tensor of the wrong size");
  for (std::size_t i = 0; i < values.size(); ++i)
    if ((bits[i / 8] >> (i % 8) & 1) == 0) values[i] = 0;
}

std::vector<std::vector<std::uint8_t>> bucket_masks(const Blueprint& blueprint,
                                                    const ParameterMasks& masks) {
  std::vector<std::vector<std::uint8_t>> buckets(blueprint.buckets.size());
  if (masks.empty()) return buckets;
  const auto& parameters = blueprint.graph.parameters();
  if (masks.size() != parameters.size()) throw Error("masks of another network");
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (masks[p].empty()) continue;
    const auto count = static_cast<std::size_t>(parameters[p].shape.elements());
    if (masks[p].size() != (count + 7) / 8)
      throw Error("a mask of the wrong size for '" + parameters[p].name + "'");
    const std::uint32_t b = blueprint.bucket_of[p].value;
    std::vector<std::uint8_t>& bits = buckets[b];
    if (bits.empty())
      bits.assign(blueprint.buckets[b].bytes / sizeof(float) / 8 + cpu::mask_padding, 0xff);
    // Parameters begin on cache lines, so their bits begin on bytes.
    const std::size_t first = blueprint.parameter_offset[p] / sizeof(float) / 8;
    for (std::size_t i = 0; i < count; ++i)
      if ((masks[p][i / 8] >> (i % 8) & 1) == 0)
        bits[first + i / 8] &= static_cast<std::uint8_t>(~(1U << (i % 8)));
  }
  return buckets;
}

}  // namespace regatta
