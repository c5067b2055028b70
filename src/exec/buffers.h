// Every buffer of a plan. Memory is ours and made once, so addresses never change. At gates a
// buffer that tasks of two memories access has a copy in each; otherwise StarPU knows the buffer,
// which lies on the node that uses it most, and makes copies itself.
#pragma once

#include <starpu.h>

#include <map>
#include <memory>
#include <vector>

#include "exec/memory.h"
#include "tasks/footprint.h"

namespace regatta {

class PlanBuffer {
 public:
  struct Memory {
    bool on_host = true;
    int gpu_node = -1;     // StarPU's number of a GPU's memory that has a copy; -1: none
    bool pinned = false;   // the host's copy, so that GPUs read and write it at full speed
    bool managed = false;  // registered with StarPU, which makes further copies: ours is one
  };
  PlanBuffer(std::size_t bytes, const Memory& memory);
  ~PlanBuffer();
  PlanBuffer(const PlanBuffer&) = delete;
  PlanBuffer& operator=(const PlanBuffer&) = delete;

  starpu_data_handle_t handle() const { return handle_; }  // null: StarPU does not know it
  BufferData data() const {
    return {host_ ? host_->data() : nullptr, reinterpret_cast<std::byte*>(device_)};
  }
  const std::shared_ptr<const HostMemory>& host() const {
    return host_;
  }                 // null: has no copy there
  int gpu() const;  // CUDA's number of the GPU that has a copy
  std::size_t bytes() const { return bytes_; }
  bool has_two() const { return host_ && device_; }  // copies

 private:
  explicit PlanBuffer(std::size_t bytes) : bytes_(bytes), memory_{.on_host = false} {}

  std::size_t bytes_;
  Memory memory_;
  std::shared_ptr<const HostMemory> host_;
  std::uintptr_t device_ = 0;
  starpu_data_handle_t handle_{};
};

// Host access to some bytes of a buffer for the length of a scope. The caller has waited for all
// tasks that access them.
class HostView {
 public:
  HostView(const PlanBuffer& buffer, ByteRange range, bool writes);
  ~HostView();
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;
  float* floats() const { return reinterpret_cast<float*>(data_); }
  void bring_to_device();  // what was written; does nothing where there is no copy on a GPU

 private:
  const PlanBuffer& buffer_;
  ByteRange range_;
  std::vector<std::byte> copied_;  // of a buffer that only a GPU has
  std::byte* data_;                // of the range
};

class Buffers {
 public:
  // `memory_nodes`: StarPU's memory node of each device group. `managed`: as PlanBuffer::Memory has
  // it.
  Buffers(const Blueprint& blueprint, std::vector<int> memory_nodes, bool managed, bool training);

  // Made at the first call, zeroed.
  const PlanBuffer& get(BufferKind kind, std::uint32_t first, std::uint32_t second,
                        std::size_t bytes, std::size_t copy = 0);
  std::size_t bytes() const;
  // The host's copies: who holds them keeps them beyond the buffers' end.
  std::vector<std::shared_ptr<const HostMemory>> host_memory() const;

  // For --reduction redux: how StarPU starts and merges gradients.
  void set_reduction(starpu_codelet* add, starpu_codelet* zero);

 private:
  PlanBuffer::Memory memory_of(BufferKind kind, std::uint32_t first, std::uint32_t second) const;

  const Blueprint& blueprint_;
  std::vector<int> memory_nodes_;
  const bool managed_;
  bool gpus_ = false;
  std::map<BufferKey, BufferUsers> users_;  // where several memories have copies
  starpu_codelet *add_ = nullptr, *zero_ = nullptr;
  std::map<BufferKey, std::vector<std::unique_ptr<PlanBuffer>>> buffers_;
};

}  // namespace regatta
