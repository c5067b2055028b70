// Predictions against measurements: bench fidelity over models and granularities, bench placement
// over who runs what.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace regatta::app {

struct FidelityFlags {
  std::string models = "tiny,lenet5,resnet18,mobilenet_v2,resnet50";
  std::string workers = "1,2";
  std::optional<std::string> input;  // of every model, instead of its own setting
  std::optional<std::int64_t> batch;
  std::string placements = "dynamic";
  double calibrate = 3, seconds = 1.5;
  std::size_t rounds = 5;
  double budget = 60;  // minutes
  std::uint64_t seed = 1;
  bool why = false;
  std::optional<std::string> json_file, csv_file;
};

void declare_fidelity(CLI::App& app, FidelityFlags& flags);
int run_fidelity(const FidelityFlags& flags);

// regatta bench placement: dynamic, hybrid and static placement of one model.
FidelityFlags placement_defaults();
void declare_placement(CLI::App& app, FidelityFlags& flags);
int run_placement(const FidelityFlags& flags);

}  // namespace regatta::app
