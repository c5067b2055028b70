// regatta bench runtime: what the runtime does by itself, with kernels that compute nothing.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace regatta::app {

struct RuntimeFlags {
  std::string model = "tiny", segments = "op", chunks = "1,16,256", workers, kernels = "none";
  double seconds = 1;
  std::optional<std::string> json_file;
};

void declare_runtime(CLI::App& app, RuntimeFlags& flags);
int run_runtime(const RuntimeFlags& flags);

}  // namespace regatta::app
