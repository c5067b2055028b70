// Flags that say what is computed: the optimizer, its schedule, and what is done to gradients,
// targets and samples.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "app/command.h"
#include "train/job.h"

namespace regatta::app {

struct RecipeFlags {
  std::string optimizer = "sgd";
  std::map<std::string, std::optional<double>> numbers;  // by flag; defaults are the optimizer's
  std::optional<double> clip_norm, clip_value, ema;
  std::optional<std::int64_t> accumulate;
  std::string schedule = "constant";
  std::optional<std::string> step_size, warmup;  // steps, or epochs such as 5e
  std::optional<double> gamma, final_lr, warmup_start;
  bool cycle_momentum = false;
  std::optional<double> label_smoothing, mixup, dropout;
  std::string batch_norm = "whole", wire_precision = "fp32";
  std::optional<std::string> mask;
};

void declare_recipe(CLI::App& app, RecipeFlags& flags);
// Only those that say which work there is to measure: --optimizer and --batch-norm.
void declare_measured_recipe(CLI::App& app, RecipeFlags& flags);
CLI::Option* add_wire_precision_flag(CLI::App& app, std::string& precision);

// Throws InputError for a flag that does not concern the optimizer or the schedule.
void apply(const RecipeFlags& flags, JobOptions& job);

}  // namespace regatta::app
