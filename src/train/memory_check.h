// Whether a run fits into memory, asked before anything large is made: a process that takes more
// than its limits allow is killed without a word.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "platform/limits.h"
#include "train/job.h"

namespace regatta {

// What the plan is carried out for: evaluating alone, training, or training that writes
// checkpoints.
enum class Purpose { evaluation, training, saved_training };

// Bytes of the node's memory that the buffers of a plan will take in this run.
std::size_t buffer_bytes_of(const TrainJob& job, const Plan& plan,
                            Purpose purpose = Purpose::training);

// Bytes of the node's memory by what they are for, as people call it: kinds of buffers, the
// workspace of CPU workers' kernels, and what is copied to write a checkpoint.
using BytesByKind = std::map<std::string, std::size_t>;
inline constexpr const char* workspace_kind = "workspace of kernels";
// StarPU's own memory, the stacks of its threads and what kernels compile. They count only against
// limits of what is mapped: the parts that are written are small.
inline constexpr const char* runtime_kind = "StarPU, its threads and compiled code";
BytesByKind memory_by_kind(const TrainJob& job, const Plan& plan,
                           Purpose purpose = Purpose::saved_training);
// All of them together.
std::size_t memory_needed(const TrainJob& job, const Plan& plan,
                          Purpose purpose = Purpose::saved_training);

// Bytes of a GPU's memory: the plan's buffers, and of the kernels' workspace what is known before
// cuDNN has chosen how to compute. Libraries take some more.
BytesByKind gpu_memory_by_kind(const TrainJob& job, const Plan& plan,
                               Purpose purpose = Purpose::training);
std::size_t gpu_memory_needed(const TrainJob& job, const Plan& plan,
                              Purpose purpose = Purpose::training);

// Whether the plan takes no more than each of `limits` leaves.
bool fits(const TrainJob& job, const Plan& plan, const std::vector<MemoryLimit>& limits,
          Purpose purpose = Purpose::saved_training);

// Whether it takes no more of the GPU's memory than `limit` leaves.
bool fits_gpu(const TrainJob& job, const Plan& plan, const MemoryLimit& limit,
              Purpose purpose = Purpose::training);
// Whether it fits into what is left of this machine's memories, the GPU's too if the plan has one.
bool fits_here(const TrainJob& job, const Plan& plan);

// Throws InputError if the plan takes more than one of `limits` leaves: it names that limit, what
// is needed and most of it for what, and the largest --batch that fits.
void require_memory(const TrainJob& job, const Plan& plan,
                    const std::vector<MemoryLimit>& limits = memory_limits(),
                    Purpose purpose = Purpose::saved_training);

// The same of the GPU's memory, which require_memory() also asks for where the plan has a GPU.
void require_gpu_memory(const TrainJob& job, const Plan& plan, const MemoryLimit& limit,
                        Purpose purpose = Purpose::training);

// The same of samples that opening `spec` reads into memory. They are counted as far as their files
// tell before they are read.
void require_memory_of_data(const std::string& spec, Split split,
                            const std::vector<MemoryLimit>& limits = memory_limits());

}  // namespace regatta
