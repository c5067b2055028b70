#include "exec/cpu_device.h"

#include "backends/cpu/batch_norm.h"
#include "backends/cpu/bfloat16.h"
#include "backends/cpu/grouped_batch_norm.h"
#include "backends/cpu/optimizer.h"
#include "backends/cpu/parallel.h"

namespace regatta {

CpuDevice::CpuDevice(cpu::Backend& backend, int team) : worker_(backend) {
  cpu::prepare_worker_thread(team);
}

void CpuDevice::run(const Instruction& step, const Operands& operands) {
  worker_.run(step, operands);
}

void CpuDevice::pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
                     std::size_t room) {
  worker_.pack(node, parameters, packed, room);
}

void CpuDevice::combine_statistics(const Node& node, std::span<const PartialSums> chunks,
                                   float* statistics, std::span<float* const> states) {
  cpu::combine_statistics(node, chunks, statistics, states);
}

void CpuDevice::combine_gradients(const Node& node, std::span<const PartialSums> chunks,
                                  float* statistics) {
  cpu::combine_gradients(node, chunks, statistics);
}

void CpuDevice::track_statistics(const Node& node, std::span<const GroupSums> chunks,
                                 std::span<float* const> states) {
  cpu::track_statistics(node, chunks, states);
}

void CpuDevice::reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) {
  cpu::reduce_slots(sum, others, count);
}

void CpuDevice::sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                            const std::uint8_t* mask, double* sum) {
  *sum = cpu::sum_squares(gradient, tensors, mask);
}

void CpuDevice::clip_scale(std::span<const double* const> sums, const UpdateNumbers& numbers,
                           float* scale) {
  *scale = cpu::clip_scale(sums, numbers.clip_norm);
}

void CpuDevice::update(const UpdateStep& step) { cpu::update(step); }

void CpuDevice::share_out(std::int64_t samples, const Piece& piece) {
  // A sample to be read or decoded is worth a thread whatever its size.
  cpu::parallel_for(samples, INT16_MAX, piece);
}

bool CpuDevice::finite(const void* values, Dtype dtype, std::size_t count) {
  return cpu::with_type(
      dtype, [&]<class T>() { return cpu::all_finite(static_cast<const T*>(values), count); });
}

}  // namespace regatta
