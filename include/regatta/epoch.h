// What one pass over the data came to.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// What loading samples took, in seconds of all workers that load together.
struct LoadingTimes {
  double reading = 0;     // files, or memory where the data lies there
  double decoding = 0;    // JPEG and PNG
  double transforms = 0;  // resizing, augmentation, mixup, conversion to floats
  double wire = 0;        // copies to a GPU's memory
  double other = 0;       // such as making up synthetic samples
  double disk_bytes = 0;  // that reading got from a disk, not from memory

  double seconds() const { return reading + decoding + transforms + wire + other; }
  LoadingTimes& operator+=(const LoadingTimes& more) {
    reading += more.reading;
    decoding += more.decoding;
    transforms += more.transforms;
    wire += more.wire;
    other += more.other;
    disk_bytes += more.disk_bytes;
    return *this;
  }
};

struct EpochRecord {
  std::int64_t epoch = 0;  // counted from 1
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;  // if there is test data
  std::chrono::duration<double> duration{};        // of training, without the test
  double loader_share = 0;         // of the time of the workers that load, spent loading
  double data_wait = 0;            // of the duration, in which a step waited for its first samples
  LoadingTimes loading{};          // what the loading did
  std::int64_t skipped = 0;        // samples that could not be read and were replaced, so far
  std::vector<std::string> notes;  // what else the user should know, a line each
};

}  // namespace regatta
