// The flags of regatta train.
#pragma once

#include <optional>
#include <string>

#include "app/placement.h"
#include "app/rank_flags.h"
#include "app/recipe_flags.h"
#include "app/tracing.h"
#include "train/job.h"

namespace regatta::app {

struct TrainFlags {
  JobOptions job;
  RecipeFlags recipe;
  std::optional<std::int64_t> epochs, steps;
  std::string reduction = "slots", shuffle = "on";
  std::optional<std::string> backward;
  std::string devices = "auto", precision = "fp32", perf_model = "fitted";
  std::optional<std::string> layout;
  std::string granularity = "auto";
  bool explain = false;
  std::optional<std::string> init, save_gradients, out, resume, json_file, input, chunks, shares,
      scheduler, checkpoint_every, checkpoint_at, from;
  std::optional<int> keep;
  bool no_refine = false;
  TraceFlags trace;
  PlacementFlags placement;
  RankFlags ranks;
};

void declare(CLI::App& app, TrainFlags& flags);

}  // namespace regatta::app
