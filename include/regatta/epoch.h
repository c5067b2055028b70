// What one pass over the data came to.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace regatta {

struct EpochRecord {
  std::int64_t epoch = 0;  // counted from 1
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;  // if there is test data
  std::chrono::duration<double> duration{};        // of training, without the test
};

}  // namespace regatta
