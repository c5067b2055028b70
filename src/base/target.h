// What a sample should be recognised as. With mixup a sample is a blend of two, and so is its
// target; otherwise `other_share` is 0.
#pragma once

#include <cstdint>

namespace regatta {

struct Target {
  std::int32_t label = 0;
  std::int32_t other = 0;
  float other_share = 0;

  static constexpr Target of(std::int32_t label) { return {label, label, 0}; }
  // The label that an answer is counted against.
  constexpr std::int32_t expected() const { return other_share < 0.5f ? label : other; }
  bool operator==(const Target&) const = default;
};
static_assert(sizeof(Target) == 12, "GPUs read it as it lies");

}  // namespace regatta
