// Training steps of one plan, to be measured: with any number of live samples in each chunk, on
// weights that are thrown away.
#pragma once

#include "exec/executor.h"
#include "train/batches.h"
#include "train/job.h"

namespace regatta {

// Lists that take 50 us to 1 ms each are run so often in a row; medians over them are taken.
inline constexpr int many_lists = 60;

class CalibrationSteps {
 public:
  // Cores alone compute in fp32 where GPUs compute in tf32.
  CalibrationSteps(const TrainJob& job, const PlanOptions& plan);

  Executor& executor() { return executor_; }
  // Input of the next step: `size` samples for each chunk, other ones each time, as in training:
  // those of the step before are still in the caches.
  StepInput input(std::int64_t size);
  // Runs so many steps, one after the other, as training has them. Returns what they took together.
  Seconds run(std::int64_t size, int count = 1);

 private:
  Recipe recipe_;
  Executor executor_;
  Visits visits_;
  std::int64_t chunks_ = 0;
  std::int64_t next_ = 0;  // sample
};

}  // namespace regatta
