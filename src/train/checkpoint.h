// Checkpoints of a run: complete folders, written aside, synced and renamed, so that a crash at any
// moment leaves the ones before it as they were.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/checkpoint_policy.h"
#include "train/loop.h"

namespace regatta {

// RUN/checkpoints/step-N holds model.safetensors (PyTorch loads it), optimizer.safetensors,
// state.json and manifest.json. With `best`, RUN/checkpoints/best becomes the same; with `kept`, so
// does RUN/checkpoints/kept-N, which stays. Older ones than
// the newest `keep` go, once the new one is safe. Throws InputError that names what cannot be
// written, or the tensor that holds a value that is no number: such weights are not worth keeping.
// `class_names`, of the network's outputs, go into the metadata of model.safetensors.
void save_checkpoint(const std::filesystem::path& run, const Executor& executor,
                     const TrainState& state, int keep = 2,
                     const std::optional<Score>& score = std::nullopt, bool best = false,
                     const std::vector<std::string>& class_names = {}, bool kept = false);

// RUN/checkpoints/kept-N.
std::filesystem::path kept_checkpoint(const std::filesystem::path& run, std::int64_t step);

// Makes `copy` a checkpoint with the files of `checkpoint`, by hard links where that works: files
// of checkpoints never change. A crash leaves nothing under that name. Throws InputError.
void share_checkpoint(const std::filesystem::path& checkpoint, const std::filesystem::path& copy);

// The newest checkpoint that is whole; damaged ones are passed over and described in `damaged`.
// Throws InputError when there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run,
                                        std::vector<std::string>* damaged = nullptr);

// RUN/checkpoints/best; throws InputError when there is none or it is damaged.
std::filesystem::path best_checkpoint(const std::filesystem::path& run);

bool has_checkpoints(const std::filesystem::path& run);  // whole or not

// The step of the oldest RUN/checkpoints/step-N, whole or not; 0 if there is none.
std::int64_t oldest_checkpoint_step(const std::filesystem::path& run);

// The score of RUN/checkpoints/best, if it is there and whole.
std::optional<Score> best_score(const std::filesystem::path& run);

TrainState checkpoint_state(const std::filesystem::path& checkpoint);  // where the run stood

// Sets weights, statistics and optimizer state; returns where the run stood.
TrainState load_checkpoint(const std::filesystem::path& checkpoint, Executor& executor);

// For a run that goes on after `step`: removes what a crash left half-written, and sets damaged
// checkpoints of later steps aside as step-N.damaged.
void clear_leftovers(const std::filesystem::path& run, std::int64_t step);

}  // namespace regatta
