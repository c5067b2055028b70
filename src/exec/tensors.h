// Lets the host read and write parameters and other tensors of a plan. No task that accesses them
// may be running.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/bucket_masks.h"
#include "exec/buffers.h"

namespace regatta {

class Tensors {
 public:
  // All arguments must outlive this.
  Tensors(const Blueprint& blueprint, Buffers& buffers, const ParameterMasks& masks)
      : blueprint_(blueprint), buffers_(buffers), masks_(masks) {}

  // The values of one parameter in buffers of parameters, moments, averages or gradients; `second`
  // as BufferKind says. Writing sets masked values to zero.
  std::vector<float> read(BufferKind kind, ParameterId id, std::uint32_t second) const;
  void write(BufferKind kind, ParameterId id, std::uint32_t second, std::span<const float> values);
  std::vector<float> state(StateId id) const;
  void set_state(StateId id, std::span<const float> values);
  // The first parameter with a value that is infinite or not a number.
  std::optional<ParameterId> not_finite() const;

 private:
  const PlanBuffer& of_parameter(BufferKind kind, ParameterId id, std::uint32_t second) const;
  const PlanBuffer& of_state(StateId id) const;

  const Blueprint& blueprint_;
  Buffers& buffers_;
  const ParameterMasks& masks_;
};

}  // namespace regatta
