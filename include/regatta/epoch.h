// What one pass over the data came to.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

struct EpochRecord {
  std::int64_t epoch = 0;  // counted from 1
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;  // if there is test data
  std::chrono::duration<double> duration{};        // of training, without the test
  double loader_share = 0;         // of the time of the workers that load, spent loading
  std::int64_t skipped = 0;        // samples that could not be read and were replaced, so far
  std::vector<std::string> notes;  // what else the user should know, a line each
};

}  // namespace regatta
