// regatta bench granularity: the automatic choice against fixed ones, cell by cell.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace regatta::app {

struct GranularityFlags {
  std::string models = "tiny,resnet18", sizes = "28,64,128,256,512", batches = "4,14,32,120";
  std::optional<int> workers;
  double budget = 60;    // minutes
  double max_step = 2;   // seconds
  double seconds = 0.4;  // of a measurement
  std::size_t rounds = 3;
  std::uint64_t seed = 1;
  std::optional<std::string> json_file, csv_file;
};

void declare_granularity(CLI::App& app, GranularityFlags& flags);
int run_granularity(const GranularityFlags& flags);

}  // namespace regatta::app
