// regatta bench unequal: workers made unequal, with equal and with uneven shares.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace regatta::app {

struct UnequalFlags {
  std::string model = "resnet18", input = "3x64x64", segments = "block";
  std::int64_t batch = 240;
  int workers = 2;
  std::vector<std::string> slow{"1=2"};
  double calibrate = 3, balance = 90, seconds = 4;
  std::size_t rounds = 3;
  std::optional<std::string> json_file;
};

void declare_unequal(CLI::App& app, UnequalFlags& flags);
int run_unequal(const UnequalFlags& flags);

}  // namespace regatta::app
