// The training job of a model on synthetic data, for commands that plan or predict its steps and
// do not train.
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

// Throws InputError for an unknown model, or for an image size that the model does not take.
TrainJob job_of(const ModelFlags& flags);

}  // namespace regatta::app
