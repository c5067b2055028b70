// Which kernels ran on a GPU and when, also inside replayed graphs: what CUPTI tells. CUPTI is
// looked for at run time, so that a machine without it works too. This header needs no CUDA header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace regatta::cuda {

// One run of a kernel, in nanoseconds of CUPTI's clock.
struct KernelRun {
  std::uint32_t name = 0;         // how many names came before its own
  std::int32_t device = 0;        // CUDA's number
  std::uint32_t correlation = 0;  // of the call that launched it; a graph's kernels share one
  std::uint64_t start = 0, end = 0;
};

// A call that launched something, and the mark that its thread had set.
struct LaunchMark {
  std::uint32_t correlation = 0;
  std::uint64_t mark = 0;
};

struct KernelNotes {
  std::vector<std::string> names;  // new ones, as the compiler mangled them
  std::vector<KernelRun> kernels;
  std::vector<LaunchMark> marks;
};

class KernelLog {
 public:
  virtual ~KernelLog() = default;

  virtual std::uint64_t now() const = 0;  // CUPTI's clock

  // Between them, what this thread launches is marked.
  virtual void begin_mark(std::uint64_t mark) = 0;
  virtual void end_mark() = 0;

  // Everything CUPTI has handed over since the last call. `all`: what it still holds too, which
  // must have run.
  virtual KernelNotes take(bool all) = 0;
};

// Listens from now on; one at a time. Null where there is no CUPTI or it refuses; `why` then says
// so in one line.
std::unique_ptr<KernelLog> open_kernel_log(std::string& why);

}  // namespace regatta::cuda
