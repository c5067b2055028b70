#include "exec/cpu_device.h"

#include "backends/cpu/batch_norm.h"
#include "backends/cpu/optimizer.h"

namespace regatta {

CpuDevice::CpuDevice(cpu::Backend& backend) : worker_(backend) { cpu::prepare_worker_thread(); }

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

void CpuDevice::reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) {
  cpu::reduce_slots(sum, others, count);
}

void CpuDevice::sgd_step(const SgdSettings& sgd, const float* gradient, float* velocity,
                         float* parameters, std::size_t count) {
  cpu::sgd_step({static_cast<float>(sgd.learning_rate), static_cast<float>(sgd.momentum),
                 static_cast<float>(sgd.weight_decay)},
                gradient, velocity, parameters, count);
}

}  // namespace regatta
