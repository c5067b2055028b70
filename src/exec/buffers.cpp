#include "exec/buffers.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "exec/cuda_runner.h"
#include "tasks/footprint.h"

namespace regatta {

RegisteredBuffer::RegisteredBuffer(std::size_t bytes, int node, bool pinned)
    : bytes_(bytes), node_(node), pinned_(pinned) {
  if (node == STARPU_MAIN_RAM) {
    host_ = HostMemory(bytes);
    if (pinned_) pinned_ = starpu_memory_pin(host_.data(), bytes) == 0;
    starpu_variable_data_register(&handle_, STARPU_MAIN_RAM,
                                  reinterpret_cast<std::uintptr_t>(host_.data()), bytes);
    return;
  }
  device_ = starpu_malloc_on_node(static_cast<unsigned>(node), bytes);
  if (device_ == 0)
    throw InputError("out of GPU memory: a buffer of " + std::to_string(bytes >> 20) +
                     " MiB cannot be had; a smaller --batch, or more --chunks for networks without "
                     "batch norm, needs less");
  zero_on_device(starpu_memory_node_get_devid(static_cast<unsigned>(node)),
                 reinterpret_cast<void*>(device_), bytes);
  starpu_variable_data_register(&handle_, node, device_, bytes);
}

RegisteredBuffer::~RegisteredBuffer() {
  // Nobody reads the content any more, so nothing is copied home.
  starpu_data_unregister_no_coherency(handle_);
  if (device_) starpu_free_on_node(static_cast<unsigned>(node_), device_, bytes_);
  if (pinned_) starpu_memory_unpin(host_.data(), bytes_);
}

HostView::HostView(const RegisteredBuffer& buffer, starpu_data_access_mode mode)
    : handle_(buffer.handle()) {
  // On the node by name: plain acquire would leave a GPU's buffer on its GPU.
  if (starpu_data_acquire_on_node(handle_, STARPU_MAIN_RAM, mode) != 0)
    throw Error("StarPU could not bring a buffer to the host");
  data_ = static_cast<std::byte*>(starpu_data_handle_to_pointer(handle_, STARPU_MAIN_RAM));
}

HostView::~HostView() { starpu_data_release_on_node(handle_, STARPU_MAIN_RAM); }

Buffers::Buffers(const Blueprint& blueprint, std::vector<int> memory_nodes)
    : blueprint_(blueprint),
      memory_nodes_(std::move(memory_nodes)),
      pinned_(std::ranges::any_of(memory_nodes_, [](int n) { return n != STARPU_MAIN_RAM; })) {}

void Buffers::set_reduction(starpu_codelet* add, starpu_codelet* zero) {
  add_ = add;
  zero_ = zero;
}

const RegisteredBuffer& Buffers::get(BufferKind kind, std::uint32_t first, std::uint32_t second,
                                     std::size_t bytes, std::size_t copy) {
  auto& copies = buffers_[{kind, first, second}];
  if (copies.size() <= copy) copies.resize(copy + 1);
  if (!copies[copy]) {
    const bool loaded = kind == BufferKind::samples;
    const int node =
        loaded ? STARPU_MAIN_RAM : memory_nodes_[home_of(blueprint_, kind, first, second).value];
    copies[copy] = std::make_unique<RegisteredBuffer>(bytes, node, pinned_ && loaded);
    if (kind == BufferKind::gradient && add_)
      starpu_data_set_reduction_methods(copies[copy]->handle(), add_, zero_);
  }
  return *copies[copy];
}

std::size_t Buffers::bytes() const {
  std::size_t total = 0;
  for (const auto& [key, copies] : buffers_)
    for (const auto& copy : copies) total += copy ? copy->bytes() : 0;
  return total;
}

}  // namespace regatta
