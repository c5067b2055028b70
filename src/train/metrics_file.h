// metrics.jsonl of a run: a line for every step and epoch at first. However long the run is, what
// lies before its oldest checkpoint does not grow beyond some number of lines.
#pragma once

#include <filesystem>
#include <string>

#include "train/line_file.h"
#include "train/loop.h"

namespace regatta {

inline constexpr const char* metrics_name = "metrics.jsonl";

class MetricsFile {
 public:
  // The file of the run in `folder`, which goes on from `from`: later lines are dropped. Throws
  // InputError.
  MetricsFile(const std::filesystem::path& folder, const TrainState& from,
              std::size_t most_lines = 100000);

  void add(const std::string& line);
  void sync();  // throws InputError if lines are left over

  // When there are too many lines, joins neighbours that tell of steps and drops epochs that are no
  // extremes of their loss, evenly over the run, but no lines of steps after `step`: a run that
  // goes on from that step's checkpoint, the oldest there is, drops whole lines. A file that cannot
  // be written stays as it is.
  void condense(std::int64_t step);

 private:
  std::filesystem::path path_;
  std::size_t most_lines_, lines_ = 0;
  std::size_t condense_at_ = most_lines_;  // lines
  LineFile file_;
};

}  // namespace regatta
