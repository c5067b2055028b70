// A GPU that is to be as slow as the user wishes, for experiments with unequal devices.
#pragma once

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"

namespace regatta::cuda {

// Makes what is put on a stream between begin() and end() take `factor` times as long: end() waits
// on the GPU. Both may be captured.
class SlowDown {
 public:
  SlowDown(Stream stream, double factor);
  void begin();
  void end();

 private:
  Stream stream_;
  double factor_;
  DeviceMemory began_;  // the GPU's clock at begin(), in nanoseconds
};

}  // namespace regatta::cuda
