// The passes over parameters: summing gradient slots, measuring and clipping gradients, and taking
// an optimizer's step.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device_numbers.h"
#include "backends/update.h"

namespace regatta::cuda {

// sum += each of the others, in their order, in one pass over memory.
void reduce_slots(Stream stream, float* sum, std::span<const float* const> others,
                  std::size_t count);

// Enqueues steps on one stream. The numbers of a step lie on the device, so that a captured graph
// follows a learning rate that changes. Sums never change from run to run.
class Optimizer {
 public:
  // `mark`, on the device: while it is not zero, no step changes anything. A gradient that is
  // infinite or not a number sets it before its bucket moves, or any bucket if gradients are
  // clipped by their norm. Null: there is none.
  Optimizer(Stream stream, int* mark);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Whether a gradient has set the mark, as far as steps are done. Any thread may ask.
  bool saw_not_finite() const;
  // With no step on its way; the mark is its owner's to clear.
  void forget_not_finite();

  // Brings the numbers of the next steps to the device; not part of a capture.
  void follow(const UpdateNumbers& numbers) { numbers_.set(&numbers); }

  // The squares of a bucket's gradient. `mask`: as in UpdateStep, or null.
  void sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                   const std::uint8_t* mask, double* sum);
  // PyTorch's clip_grad_norm_, from the sums of all buckets and the followed clip_norm.
  void clip_scale(std::span<const double* const> sums, float* scale);
  void update(const UpdateStep& step);

 private:
  const UpdateNumbers* numbers() const {
    return reinterpret_cast<const UpdateNumbers*>(numbers_.data());
  }
  double* sums() const { return reinterpret_cast<double*>(scratch_.data()); }

  Stream stream_;
  int* mark_;
  int* told_ = nullptr;  // pinned
  DeviceNumbers numbers_;
  DeviceMemory scratch_;
};

}  // namespace regatta::cuda
