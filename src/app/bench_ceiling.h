// regatta bench ceiling: what the cores could reach with a model, and what a training run reaches
// of it, operator by operator.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "graph/program.h"
#include "tasks/memory.h"

namespace regatta::app {

struct CeilingFlags {
  std::string model;
  std::optional<std::string> input, segments, chunks;
  std::optional<int> workers, team;
  std::int64_t batch = 32;
  std::size_t steps = 12;
  double seconds = 2;
  std::string granularity = "auto", precision = "fp32";
  std::optional<std::string> json_file;
};

void declare_ceiling(CLI::App& app, CeilingFlags& flags);
int run_ceiling(const CeilingFlags& flags);

// Bytes of one sample's values and gradients that an instruction must read and write on a CPU, each
// once.
double bytes_moved(const Graph& graph, const GradientFlow& flow,
                   const std::vector<ValueForm>& forms, const Instruction& step);

}  // namespace regatta::app
