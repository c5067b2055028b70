// A device whose kernels compute nothing, so that the runtime can be tested and timed by itself:
// see ExecOptions::null_kernels.
#pragma once

#include <algorithm>

#include "exec/device.h"

namespace regatta {

class NullDevice : public Device {
 public:
  explicit NullDevice(NodeId loss) : loss_(loss) {}

  void run(const Instruction& step, const Operands& operands) override {
    // A loss that nobody wrote might not be a number, which would end the run.
    if (step.node == loss_ && step.work == Work::forward)
      std::fill_n(operands.output, 2 * operands.n, 0.0f);
  }
  void pack(const Node&, std::span<const float* const>, std::byte*, std::size_t) override {}
  void combine_statistics(const Node&, std::span<const PartialSums>, float*,
                          std::span<float* const>) override {}
  void combine_gradients(const Node&, std::span<const PartialSums>, float*) override {}
  void track_statistics(const Node&, std::span<const GroupSums>, std::span<float* const>) override {
  }
  void reduce_slots(float*, std::span<const float* const>, std::size_t) override {}
  void sum_squares(const float*, std::span<const BucketTensor>, const std::uint8_t*,
                   double* sum) override {
    *sum = 0;
  }
  void clip_scale(std::span<const double* const>, const UpdateNumbers&, float*) override {}
  void update(const UpdateStep&) override {}
  bool on_host() const override { return true; }
  bool finite(const void*, Dtype, std::size_t) override { return true; }

 private:
  NodeId loss_;
};

}  // namespace regatta
