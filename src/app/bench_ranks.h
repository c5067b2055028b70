// bench scaling --ranks: throughput over numbers of processes instead of workers.
#pragma once

#include <optional>
#include <string>

#include "app/bench_cell.h"

namespace regatta::app {

struct RankScalingFlags {
  CellOptions cell;
  std::string ranks;  // a list
  std::string hosts;  // the first so many have a rank each; empty: all are on this machine
  std::size_t repeats = 3;
  std::string wire_precision = "fp32";
  std::optional<std::string> json_file;
};
int run_rank_scaling(const RankScalingFlags& flags);

}  // namespace regatta::app
