// The CPU backend behind the interpreter's interface. One per worker.
#pragma once

#include "backends/cpu/cpu_backend.h"
#include "exec/device.h"

namespace regatta {

class CpuDevice : public Device {
 public:
  // Made on the worker's own thread, which it prepares: its team of threads starts here.
  CpuDevice(cpu::Backend& backend, int team);

  void run(const Instruction& step, const Operands& operands) override;
  void pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
            std::size_t room) override;
  void combine_statistics(const Node& node, std::span<const PartialSums> chunks, float* statistics,
                          std::span<float* const> states) override;
  void combine_gradients(const Node& node, std::span<const PartialSums> chunks,
                         float* statistics) override;
  void track_statistics(const Node& node, std::span<const GroupSums> chunks,
                        std::span<float* const> states) override;
  void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) override;
  void sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                   const std::uint8_t* mask, double* sum) override;
  void clip_scale(std::span<const double* const> sums, const UpdateNumbers& numbers,
                  float* scale) override;
  void update(const UpdateStep& step) override;
  void share_out(std::int64_t samples, const Piece& piece) override;
  bool on_host() const override { return true; }
  bool finite(const void* values, Dtype dtype, std::size_t count) override;

 private:
  cpu::Worker worker_;
};

}  // namespace regatta
