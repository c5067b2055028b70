// What the interpreter asks of a kind of device. One implementation per backend.
#pragma once

#include <span>

#include "backends/operands.h"
#include "plan/recipe.h"

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
  virtual void reduce_slots(float* sum, std::span<const float* const> others,
                            std::size_t count) = 0;
  virtual void sgd_step(const SgdSettings& sgd, const float* gradient, float* velocity,
                        float* parameters, std::size_t count) = 0;
};

}  // namespace regatta
