// The CPU backend behind the interpreter's interface. One per worker.
#pragma once

#include "backends/cpu/cpu_backend.h"
#include "exec/device.h"

namespace regatta {

class CpuDevice : public Device {
 public:
  // Made on the worker's own thread, which it prepares.
  explicit CpuDevice(cpu::Backend& backend);

  void run(const Instruction& step, const Operands& operands) override;
  void pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
            std::size_t room) override;
  void combine_statistics(const Node& node, std::span<const PartialSums> chunks, float* statistics,
                          std::span<float* const> states) override;
  void combine_gradients(const Node& node, std::span<const PartialSums> chunks,
                         float* statistics) override;
  void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) override;
  void sgd_step(const SgdSettings& sgd, const float* gradient, float* velocity, float* parameters,
                std::size_t count) override;

 private:
  cpu::Worker worker_;
};

}  // namespace regatta
