// A model's training step without data of its own, for commands that only reckon with it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "train/job.h"

namespace regatta::app {

struct ModelFlags {
  std::string model;
  std::optional<std::string> input;
  std::optional<std::int64_t> classes;
  std::int64_t batch = 64;
};
void declare_model(CLI::App& app, ModelFlags& flags);

// Throws InputError: an unknown model, or an image size that it does not take.
TrainJob job_of(const ModelFlags& flags);

}  // namespace regatta::app
