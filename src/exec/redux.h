// StarPU's own reduction (plan.reduction redux): how a worker's sum of gradients starts, and how
// two of them become one.
#pragma once

#include <starpu.h>

namespace regatta {

class ReduxCodelets {
 public:
  ReduxCodelets();
  ReduxCodelets(const ReduxCodelets&) = delete;
  ReduxCodelets& operator=(const ReduxCodelets&) = delete;

  starpu_codelet* zero() { return &zero_; }
  starpu_codelet* add() { return &add_; }

 private:
  starpu_codelet zero_{}, add_{};
};

}  // namespace regatta
