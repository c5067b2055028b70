// What a plan's memories will hold, by kind of buffer.
#pragma once

#include <string>
#include <vector>

#include "plan/plan_file.h"
#include "train/job.h"

namespace regatta::app {

// Of training alone: a test after each epoch adds little. Nodes that need the same are told once.
// Without the kernels' workspace, which only the machine that computes can tell.
std::vector<MemoryPrediction> memories_of(const Graph& graph, const Plan& plan,
                                          const Recipe& recipe);

// Of a job that trains here: with the workspace of its kernels on CPUs.
std::vector<MemoryPrediction> memories_of(const TrainJob& job);

// A table: kinds of buffers, the largest first, a column for each memory.
std::string text_of(const std::vector<MemoryPrediction>& memories);

}  // namespace regatta::app
