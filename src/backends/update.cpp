#include "backends/update.h"

#include <cmath>

namespace regatta {

UpdateNumbers update_numbers(const OptimizerSettings& settings, double learning_rate,
                             double momentum, std::int64_t step) {
  const bool adam = settings.kind == OptimizerKind::adam || settings.kind == OptimizerKind::adamw;
  const double beta1 = momentum;
  const double beta2 = adam ? settings.beta2 : settings.alpha;
  const auto t = static_cast<double>(step);
  UpdateNumbers numbers;
  numbers.learning_rate = static_cast<float>(learning_rate);
  numbers.momentum = static_cast<float>(momentum);
  numbers.weight_decay = static_cast<float>(settings.weight_decay);
  numbers.keep = static_cast<float>(1 - learning_rate * settings.weight_decay);
  numbers.beta1 = static_cast<float>(beta1);
  numbers.rest1 = static_cast<float>(1 - beta1);
  numbers.beta2 = static_cast<float>(beta2);
  numbers.rest2 = static_cast<float>(1 - beta2);
  if (adam) {
    numbers.step_size = static_cast<float>(learning_rate / (1 - std::pow(beta1, t)));
    numbers.root2 = static_cast<float>(std::sqrt(1 - std::pow(beta2, t)));
  }
  numbers.epsilon = static_cast<float>(settings.epsilon);
  numbers.trust = static_cast<float>(settings.trust);
  numbers.clip_norm = static_cast<float>(settings.clip_norm);
  numbers.clip_value = static_cast<float>(settings.clip_value);
  // The first average is the parameters themselves.
  const double kept = step == 1 ? 0 : settings.ema;
  numbers.average_keep = static_cast<float>(kept);
  numbers.average_rest = static_cast<float>(1 - kept);
  return numbers;
}

}  // namespace regatta
