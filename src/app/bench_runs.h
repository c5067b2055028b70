// Runs of the program itself, each a process of its own: StarPU starts once in it, and no run
// inherits the memory, the threads or the failure of another.
#pragma once

#include <filesystem>

#include "app/bench_cell.h"
#include "base/scratch_folder.h"

namespace regatta::app {

enum class TraceDepth { tasks, operators };

// Throws InputError with what a run complained of.
class BenchRuns {
 public:
  BenchRuns();

  ScalingSample run(const CellOptions& cell) const;
  // A run folder with a trace of the same setting.
  void trace(const CellOptions& cell, std::size_t steps, TraceDepth depth,
             const std::filesystem::path& into) const;
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  void start(std::vector<std::string> arguments) const;

  std::filesystem::path program_;
  ScratchFolder folder_{"bench"};
};

}  // namespace regatta::app
