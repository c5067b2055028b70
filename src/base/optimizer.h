// An optimizer's settings: which rule moves the parameters, and its numbers.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace regatta {

enum class OptimizerKind { sgd, nesterov, adam, adamw, rmsprop, lars };

std::string_view optimizer_name(OptimizerKind kind);
OptimizerKind optimizer_named(std::string_view name);  // throws InputError with the nearest name

// Numbers that do not concern the kind are never read.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999;  // Adam's memory of gradients and of their squares
  double epsilon = 1e-8;
  double alpha = 0.99;    // RMSprop's memory of squares
  double trust = 0.001;   // LARS
  double clip_norm = 0;   // the longest gradient, all parameters together; 0: any
  double clip_value = 0;  // the largest number in a gradient; 0: any
  double ema = 0;         // how much of the averaged parameters a step keeps; 0: no average

  bool operator==(const OptimizerSettings&) const = default;
};

// PyTorch's defaults, but for the momentum of 0.9 that convolutional networks are trained with.
OptimizerSettings default_settings(OptimizerKind kind);

// One number of the settings: its name in files, its flag, and whom it concerns.
struct OptimizerNumber {
  std::string_view name, flag;
  double OptimizerSettings::*value;
  std::vector<OptimizerKind> kinds;

  bool concerns(OptimizerKind kind) const;
};
const std::vector<OptimizerNumber>& optimizer_numbers();

// One parameter inside a bucket of them, in floats. Between parameters a bucket may hold anything.
struct BucketTensor {
  std::size_t first = 0, count = 0;
  bool adapts = true;  // LARS: weights alone have a rate of their own, and decay
};

// Whether the rule keeps a running mean of gradients (0) or of their squares (1) by parameter.
constexpr int most_moments = 2;
bool keeps_moment(const OptimizerSettings& settings, int index);

}  // namespace regatta
