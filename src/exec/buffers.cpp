#include "exec/buffers.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "exec/cuda_runner.h"

namespace regatta {

// Delegates first, so that the destructor runs even if this body throws, and frees what it has.
PlanBuffer::PlanBuffer(std::size_t bytes, const Memory& memory) : PlanBuffer(bytes) {
  memory_ = memory;
  memory_.pinned = false;
  if (memory.on_host) {
    host_ = std::make_shared<const HostMemory>(bytes);
    memory_.pinned = memory.pinned && starpu_memory_pin(host_->data(), bytes) == 0;
  }
  if (memory.gpu_node >= 0) {
    device_ = starpu_malloc_on_node(static_cast<unsigned>(memory.gpu_node), bytes);
    if (device_ == 0)
      throw InputError("out of GPU memory: a buffer of " + std::to_string(bytes >> 20) +
                       " MiB cannot be had; a smaller --batch, or more --chunks for networks "
                       "without batch norm, needs less");
    zero_on_device(gpu(), reinterpret_cast<void*>(device_), bytes);
  }
  if (!memory.managed) return;
  const bool on_gpu = memory.gpu_node >= 0;
  starpu_variable_data_register(&handle_, on_gpu ? memory.gpu_node : STARPU_MAIN_RAM,
                                on_gpu ? device_ : reinterpret_cast<std::uintptr_t>(host_->data()),
                                bytes);
}

PlanBuffer::~PlanBuffer() {
  // No task reads the content any more, so nothing is copied to main memory.
  if (handle_) starpu_data_unregister_no_coherency(handle_);
  if (device_) starpu_free_on_node(static_cast<unsigned>(memory_.gpu_node), device_, bytes_);
  if (memory_.pinned) starpu_memory_unpin(host_->data(), bytes_);
}

int PlanBuffer::gpu() const {
  return starpu_memory_node_get_devid(static_cast<unsigned>(memory_.gpu_node));
}

HostView::HostView(const PlanBuffer& buffer, ByteRange range, bool writes)
    : buffer_(buffer), range_(range) {
  if (buffer.handle()) {
    // On the node by name: plain acquire would leave a GPU's buffer on its GPU.
    if (starpu_data_acquire_on_node(buffer.handle(), STARPU_MAIN_RAM,
                                    writes ? STARPU_RW : STARPU_R) != 0)
      throw Error("StarPU could not bring a buffer to the host");
    data_ =
        static_cast<std::byte*>(starpu_data_handle_to_pointer(buffer.handle(), STARPU_MAIN_RAM)) +
        range.from;
    return;
  }
  if (buffer.data().host) {
    data_ = buffer.data().host + range.from;
    return;
  }
  copied_.resize(range.bytes);
  data_ = copied_.data();
  const cuda::Copy copy{data_, buffer.data().device + range.from, range.bytes};
  if (!writes) copy_on_device(buffer.gpu(), {&copy, 1});
}

HostView::~HostView() {
  if (buffer_.handle()) starpu_data_release_on_node(buffer_.handle(), STARPU_MAIN_RAM);
}

void HostView::bring_to_device() {
  if (buffer_.handle() || !buffer_.data().device) return;
  const cuda::Copy copy{buffer_.data().device + range_.from, data_, range_.bytes};
  copy_on_device(buffer_.gpu(), {&copy, 1});
}

Buffers::Buffers(const Blueprint& blueprint, std::vector<int> memory_nodes, bool managed,
                 bool training)
    : blueprint_(blueprint),
      memory_nodes_(std::move(memory_nodes)),
      managed_(managed),
      gpus_(std::ranges::any_of(memory_nodes_, [](int n) { return n != STARPU_MAIN_RAM; })) {
  if (gpus_ && !managed) users_ = buffer_users(blueprint, training);
}

void Buffers::set_reduction(starpu_codelet* add, starpu_codelet* zero) {
  add_ = add;
  zero_ = zero;
}

PlanBuffer::Memory Buffers::memory_of(BufferKind kind, std::uint32_t first,
                                      std::uint32_t second) const {
  const int home = memory_nodes_[home_of(blueprint_, kind, first, second).value];
  const bool loaded = kind == BufferKind::samples;
  if (managed_) {
    const bool on_host = loaded || home == STARPU_MAIN_RAM;
    return {.on_host = on_host,
            .gpu_node = on_host ? -1 : home,
            .pinned = gpus_ && loaded,
            .managed = true};
  }
  const auto found = users_.find({kind, first, second});
  if (found == users_.end())
    return {.on_host = home == STARPU_MAIN_RAM, .gpu_node = home == STARPU_MAIN_RAM ? -1 : home};
  const BufferUsers& users = found->second;
  return {.on_host = users.host,
          .gpu_node = users.gpus.empty() ? -1 : memory_nodes_[users.gpus.begin()->value],
          .pinned = users.several()};
}

const PlanBuffer& Buffers::get(BufferKind kind, std::uint32_t first, std::uint32_t second,
                               std::size_t bytes, std::size_t copy) {
  auto& copies = buffers_[{kind, first, second}];
  if (copies.size() <= copy) copies.resize(copy + 1);
  if (!copies[copy]) {
    copies[copy] = std::make_unique<PlanBuffer>(bytes, memory_of(kind, first, second));
    if (kind == BufferKind::gradient && add_)
      starpu_data_set_reduction_methods(copies[copy]->handle(), add_, zero_);
  }
  return *copies[copy];
}

std::size_t Buffers::bytes() const {
  std::size_t total = 0;
  for (const auto& [key, copies] : buffers_)
    for (const auto& copy : copies)
      if (copy) total += copy->bytes() * (copy->has_two() ? 2 : 1);
  return total;
}

std::vector<std::shared_ptr<const HostMemory>> Buffers::host_memory() const {
  std::vector<std::shared_ptr<const HostMemory>> memory;
  for (const auto& [key, copies] : buffers_)
    for (const auto& copy : copies)
      if (copy && copy->host()) memory.push_back(copy->host());
  return memory;
}

}  // namespace regatta
