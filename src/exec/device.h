// What the interpreter asks of a kind of device. One implementation per backend.
#pragma once

#include <functional>
#include <span>

#include "backends/operands.h"
#include "backends/update.h"
#include "base/dtype.h"

namespace regatta {

class Device {
 public:
  virtual ~Device() = default;

  virtual void run(const Instruction& step, const Operands& operands) = 0;
  // Lays a node's parameters out as run() reads them; `room` bytes at most.
  virtual void pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
                    std::size_t room) = 0;
  virtual void combine_statistics(const Node& node, std::span<const PartialSums> chunks,
                                  float* statistics, std::span<float* const> states) = 0;
  virtual void combine_gradients(const Node& node, std::span<const PartialSums> chunks,
                                 float* statistics) = 0;
  // Moves the running statistics by the means over all groups of samples, in the order given.
  virtual void track_statistics(const Node& node, std::span<const GroupSums> chunks,
                                std::span<float* const> states) = 0;
  virtual void reduce_slots(float* sum, std::span<const float* const> others,
                            std::size_t count) = 0;
  // A bucket's sum of squares, and from all buckets' sums what clipping multiplies gradients by;
  // all pointers are the device's. `mask` as in UpdateStep.
  virtual void sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                           const std::uint8_t* mask, double* sum) = 0;
  virtual void clip_scale(std::span<const double* const> sums, const UpdateNumbers& numbers,
                          float* scale) = 0;
  virtual void update(const UpdateStep& step) = 0;

  // Calls piece(begin, end) for ranges of samples, side by side where a worker has threads to.
  using Piece = std::function<void(std::int64_t begin, std::int64_t end)>;
  virtual void share_out(std::int64_t samples, const Piece& piece) { piece(0, samples); }

  // Whether values are at hand when a call returns, so that whatever is not a number can end a step
  // before it does harm. A device that only enqueues keeps a mark of its own: its loss kernel sets
  // it, and so does its update() before it moves a bucket whose gradient is not finite; while it is
  // set, update() does nothing. The host learns of it from the losses, or at the update's end.
  virtual bool on_host() const = 0;
  // No value is infinite or not a number; waits for what was enqueued. Never called in a capture.
  virtual bool finite(const void* values, Dtype dtype, std::size_t count) = 0;
};

}  // namespace regatta
