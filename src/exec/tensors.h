// The tensors of a plan by name, for the host, with nothing on its way that accesses them.
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

  // What a buffer of parameters, moments, averages or gradients holds of a parameter; `second` as
  // BufferKind says. What is written loses its masked values.
  std::vector<float> read(BufferKind kind, ParameterId id, std::uint32_t second) const;
  void write(BufferKind kind, ParameterId id, std::uint32_t second, std::span<const float> values);
  std::vector<float> state(StateId id) const;
  void set_state(StateId id, std::span<const float> values);
  // The first parameter that is infinite or not a number somewhere.
  std::optional<ParameterId> not_finite() const;

 private:
  const PlanBuffer& of_parameter(BufferKind kind, ParameterId id, std::uint32_t second) const;
  const PlanBuffer& of_state(StateId id) const;

  const Blueprint& blueprint_;
  Buffers& buffers_;
  const ParameterMasks& masks_;
};

}  // namespace regatta
