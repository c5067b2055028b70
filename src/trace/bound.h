// Which kind of work or waiting limits a run, in the words of profilers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "trace/analysis.h"

namespace regatta::trace {

enum class Bound {
  compute,    // by the arithmetic of convolutions and dense layers
  memory,     // by operators that read and write more than they compute
  computing,  // by either: operators were not recorded
  io,         // by loading samples
  launch,     // by the runtime's handing out of tasks
  waiting,    // by workers that wait for each other or for messages
};
std::string_view bound_name(Bound bound);  // "compute-bound", "starved by I/O"

// Shares of the time of all workers that compute; their sum is 1, but for rounding.
struct BoundShares {
  Bound bound = Bound::computing;
  double computing = 0, loading = 0, launching = 0, waiting = 0;
  // The parts of `computing`; none: operators were not recorded.
  std::optional<double> arithmetic, streaming;
};
// Nothing if no worker of the record computes.
std::optional<BoundShares> bound_of(const Record& record, const Analysis& found);

std::string shares_text(const BoundShares& shares);  // "computing 30%, loading 61%, ..."
// One line with the verdict: "starved by I/O: of the workers' time computing 30%, ...".
std::string text_of(const BoundShares& shares);
Json to_json(const BoundShares& shares);

}  // namespace regatta::trace
