// Predicts the bytes in each memory of a plan, by kind of buffer.
#pragma once

#include <string>
#include <vector>

#include "plan/plan_file.h"
#include "train/job.h"

namespace regatta::app {

// Memories while training; tests between epochs need little more. Nodes that need the same memory
// are one entry. Leaves out the workspace of kernels, which only the machine that computes knows.
std::vector<MemoryPrediction> memories_of(const Graph& graph, const Plan& plan,
                                          const Recipe& recipe);

// Memories of a job that trains on this machine, with the workspace of its kernels.
std::vector<MemoryPrediction> memories_of(const TrainJob& job);

// A table: kinds of buffers, the largest first, a column for each memory.
std::string text_of(const std::vector<MemoryPrediction>& memories);

}  // namespace regatta::app
