// Checkpoints of a run: complete folders, written aside and renamed.
#pragma once

#include <filesystem>

#include "exec/executor.h"

namespace regatta {

// RUN/checkpoints/step-N holds model.safetensors (PyTorch loads it), optimizer.safetensors and
// state.json. The newest `keep` stay.
void save_checkpoint(const std::filesystem::path& run, const Executor& executor, std::int64_t step,
                     int keep = 3);

// The newest complete checkpoint; throws InputError when there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run);

// Sets weights, statistics and momenta; returns the number of steps done.
std::int64_t load_checkpoint(const std::filesystem::path& checkpoint, Executor& executor);

}  // namespace regatta
