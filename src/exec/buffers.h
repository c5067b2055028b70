// Every buffer of a plan, known to StarPU. Memory is ours and made once, on the node that uses it
// most, so addresses never change.
#pragma once

#include <starpu.h>

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "exec/memory.h"
#include "tasks/task_list.h"

namespace regatta {

class RegisteredBuffer {
 public:
  // `node`: StarPU's number of the memory it lives in. `pinned`: host memory a GPU copies from.
  RegisteredBuffer(std::size_t bytes, int node, bool pinned);
  ~RegisteredBuffer();
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;

  starpu_data_handle_t handle() const { return handle_; }
  std::byte* host_data() const { return host_.data(); }  // null: it lives on a device
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  int node_;
  bool pinned_;
  HostMemory host_;            // when the node is main memory
  std::uintptr_t device_ = 0;  // otherwise
  starpu_data_handle_t handle_{};
};

// Host access to a buffer for the length of a scope.
class HostView {
 public:
  HostView(const RegisteredBuffer& buffer, starpu_data_access_mode mode);
  ~HostView();
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;
  float* floats(std::size_t offset) const { return reinterpret_cast<float*>(data_ + offset); }

 private:
  starpu_data_handle_t handle_;
  std::byte* data_;
};

class Buffers {
 public:
  // `memory_nodes`: StarPU's memory node of each device group.
  Buffers(const Blueprint& blueprint, std::vector<int> memory_nodes);

  // Made at the first call, zeroed.
  const RegisteredBuffer& get(BufferKind kind, std::uint32_t first, std::uint32_t second,
                              std::size_t bytes, std::size_t copy = 0);
  std::size_t bytes() const;

  // For --reduction redux: how StarPU starts and merges gradients.
  void set_reduction(starpu_codelet* add, starpu_codelet* zero);

 private:
  const Blueprint& blueprint_;
  std::vector<int> memory_nodes_;
  bool pinned_;
  starpu_codelet *add_ = nullptr, *zero_ = nullptr;
  std::map<std::tuple<BufferKind, std::uint32_t, std::uint32_t>,
           std::vector<std::unique_ptr<RegisteredBuffer>>>
      buffers_;
};

}  // namespace regatta
