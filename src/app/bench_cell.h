// One measured run: a setting, trained for a while in this process, and the time of every step.
#pragma once

#include <optional>
#include <string>

#include "report/scaling.h"

namespace regatta::app {

struct CellOptions {
  std::string model;
  std::optional<std::string> data, input, scheduler, segments, chunks, shares;
  std::string devices = "cpu", precision = "fp32", reduction = "slots", granularity = "auto";
  std::int64_t batch = 64;
  std::optional<std::int64_t> classes;  // of the synthetic data; default: the model's own
  int workers = 1;
  std::optional<int> team;
  std::optional<std::int64_t> steps;  // exactly so many
  double seconds = 3;                 // else so long, but for a few steps at least
};

// The synthetic data a benchmark uses unless it is given some: as many images as it may see, in the
// size of --input or the model's own.
std::string bench_data(const CellOptions& options);
// "3x64x64": --input, or the size of the model's own images.
std::string input_of(const CellOptions& options);

ScalingSample run_cell(const CellOptions& options);

// The flags of `regatta train` and of `regatta bench cell` that ask for this setting.
std::vector<std::string> flags_of(const CellOptions& options);

}  // namespace regatta::app
