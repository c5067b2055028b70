// What one running task sees: every pointer it may touch, found by name.
#pragma once

#include <array>
#include <vector>

#include "backends/operands.h"
#include "tasks/task_list.h"

namespace regatta {

// One per worker, reused from task to task.
class Frame {
 public:
  // `masks`: by bucket, in the memory of the frame's device; null where nothing is masked.
  Frame(const Blueprint& blueprint, std::vector<const std::uint8_t*> masks);

  // Forgets all pointers when the task ends.
  class Scope {
   public:
    explicit Scope(Frame& frame) : frame_(frame) {}
    ~Scope() { frame_.clear(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Frame& frame_;
  };

  void bind(const Buffer& buffer, std::byte* data);

  std::byte* samples() const { return samples_; }
  Target* targets() const;
  float* border(NodeId node) const { return reinterpret_cast<float*>(borders_[node.value]); }
  float* parameters(BucketId bucket) const { return floats(parameters_[bucket.value]); }
  float* moment(BucketId bucket, int index) const {
    return floats(moments_[static_cast<std::size_t>(index)][bucket.value]);
  }
  float* average(BucketId bucket) const { return floats(averages_[bucket.value]); }
  double* squares(BucketId bucket) const {
    return reinterpret_cast<double*>(squares_[bucket.value]);
  }
  float* clip() const { return floats(clip_); }
  const std::uint8_t* mask(BucketId bucket) const { return masks_[bucket.value]; }
  float* gradient(BucketId bucket, int slot) const;
  float* parameter(ParameterId id) const;
  std::byte* packed(NodeId node, GroupId group) const;
  float* state(StateId id) const;
  float* statistics(NodeId node) const;
  double* partials(NodeId node, ChunkId chunk) const;
  // The sums of the whole batch's chunk with this number, whichever rank computed them.
  double* gathered_sums(NodeId node, std::size_t chunk) const;
  float* running_sum(BucketId bucket) const { return floats(running_sums_[bucket.value]); }
  float* group_sum(BucketId bucket, GroupId group) const {
    return floats(group_sums_[group.value][bucket.value]);
  }

  // Everything an instruction on a chunk of this task reads and writes, but for counts and scales.
  Operands operands(const Instruction& step, const Chunk& chunk, const ArenaMap& arena) const;

 private:
  static float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }
  void clear();

  const Blueprint& blueprint_;
  std::vector<const std::uint8_t*> masks_;  // by bucket; the same in all tasks
  std::vector<std::byte**> bound_;
  std::byte* samples_ = nullptr;
  std::byte* arena_ = nullptr;
  std::byte* statistics_ = nullptr;
  std::byte* state_ = nullptr;
  std::byte* gathered_sums_ = nullptr;
  std::byte* delivered_ = nullptr;
  std::vector<std::byte*> borders_, border_gradients_;  // by node
  std::byte* clip_ = nullptr;
  // By bucket.
  std::vector<std::byte*> parameters_, averages_, squares_, packed_, running_sums_;
  std::vector<std::vector<std::byte*>> group_sums_;            // by group and bucket
  std::array<std::vector<std::byte*>, most_moments> moments_;  // by bucket
  std::vector<std::byte*> gradients_;                          // by bucket and slot
  std::vector<std::byte*> partials_;                           // by chunk
};

}  // namespace regatta
