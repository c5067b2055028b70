#include "exec/tensors.h"

#include <algorithm>

#include "backends/cpu/optimizer.h"
#include "base/error.h"

namespace regatta {
namespace {

std::vector<float> read_floats(const PlanBuffer& from, std::size_t offset, std::int64_t count) {
  const HostView view(from, {offset, static_cast<std::size_t>(count) * sizeof(float)},
                      /*writes=*/false);
  return {view.floats(), view.floats() + count};
}

void write_floats(const PlanBuffer& to, std::size_t offset, std::span<const float> values,
                  std::int64_t count) {
  if (values.size() != static_cast<std::size_t>(count)) throw Error("tensor of the wrong size");
  HostView view(to, {offset, values.size_bytes()}, /*writes=*/true);
  std::ranges::copy(values, view.floats());
  view.bring_to_device();
}

}  // namespace

const PlanBuffer& Tensors::of_parameter(BufferKind kind, ParameterId id,
                                        std::uint32_t second) const {
  const BucketId bucket = blueprint_.bucket_of[id.value];
  return buffers_.get(kind, bucket.value, second, blueprint_.buckets[bucket.value].bytes);
}

const PlanBuffer& Tensors::of_state(StateId id) const {
  const SegmentId segment = blueprint_.segment_of[blueprint_.graph.state(id).node.value];
  return buffers_.get(BufferKind::state, segment.value, 0,
                      blueprint_.segments[segment.value].state_bytes);
}

std::vector<float> Tensors::read(BufferKind kind, ParameterId id, std::uint32_t second) const {
  std::vector<float> values =
      read_floats(of_parameter(kind, id, second), blueprint_.parameter_offset[id.value],
                  blueprint_.graph.parameter(id).shape.elements());
  // Masks are applied by updates alone: in memory, masked weights have gradients too.
  if (kind == BufferKind::gradient) zero_masked(masks_, id, values);
  return values;
}

void Tensors::write(BufferKind kind, ParameterId id, std::uint32_t second,
                    std::span<const float> values) {
  std::vector<float> masked(values.begin(), values.end());
  zero_masked(masks_, id, masked);
  write_floats(of_parameter(kind, id, second), blueprint_.parameter_offset[id.value], masked,
               blueprint_.graph.parameter(id).shape.elements());
}

std::vector<float> Tensors::state(StateId id) const {
  return read_floats(of_state(id), blueprint_.state_offset[id.value],
                     blueprint_.graph.state(id).shape.elements());
}

void Tensors::set_state(StateId id, std::span<const float> values) {
  write_floats(of_state(id), blueprint_.state_offset[id.value], values,
               blueprint_.graph.state(id).shape.elements());
}

std::optional<ParameterId> Tensors::not_finite() const {
  for (std::uint32_t i = 0; i < blueprint_.graph.parameters().size(); ++i) {
    const std::vector<float> values = read(BufferKind::parameters, ParameterId{i}, 0);
    if (!cpu::all_finite(values.data(), values.size())) return ParameterId{i};
  }
  return {};
}

}  // namespace regatta
