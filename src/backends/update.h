// What a device gets to move a bucket of parameters by one step, and the numbers of that step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/optimizer.h"

namespace regatta {

// The numbers of one step, ready for use in float: what would lose digits there (1 - beta2) is
// computed in double beforehand. They change from step to step, so a GPU keeps them in device
// memory, where a captured graph finds them.
struct UpdateNumbers {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  float keep = 1;              // AdamW: 1 - learning_rate * weight_decay
  float beta1 = 0, rest1 = 0;  // rest: one less beta
  float beta2 = 0, rest2 = 0;  // RMSprop: alpha and one less it
  float step_size = 0;         // Adam: learning_rate / (1 - beta1^t)
  float root2 = 1;             // Adam: sqrt(1 - beta2^t)
  float epsilon = 0;
  float trust = 0;
  float clip_norm = 0;                       // 0: none
  float clip_value = 0;                      // 0: none
  float average_keep = 0, average_rest = 0;  // of the averaged parameters

  bool operator==(const UpdateNumbers&) const = default;
};

// `step` counts from 1. `momentum` is Adam's beta1 where the rule is Adam's.
UpdateNumbers update_numbers(const OptimizerSettings& settings, double learning_rate,
                             double momentum, std::int64_t step);

// One bucket's step. Null where the rule or the recipe has no use for it.
struct UpdateStep {
  OptimizerKind kind = OptimizerKind::sgd;
  const UpdateNumbers* numbers = nullptr;  // on the host
  const float* gradient = nullptr;
  float* parameters = nullptr;
  std::array<float*, most_moments> moments{};
  float* average = nullptr;
  const float* gradient_scale = nullptr;  // in the device's memory, as clip_scale() left it
  // One bit for each float of the bucket, in the device's memory: where it is 0, the gradient
  // counts as 0. A parameter, its moments and its average that are 0 then stay 0 by every rule.
  const std::uint8_t* mask = nullptr;
  std::span<const BucketTensor> tensors;
  std::size_t count = 0;  // floats in the bucket
};

}  // namespace regatta
