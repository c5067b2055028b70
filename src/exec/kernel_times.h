// Kernels as CUPTI notes them, turned into operators of the record.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/kernel_log.h"
#include "trace/trace.h"

namespace regatta {

// CUPTI's clock and the record's, read together twice. Between and around the readings the one runs
// evenly against the other.
struct ClockMatch {
  struct Reading {
    std::uint64_t device = 0;
    trace::Time record = 0;
  };
  Reading first, last;

  trace::Time to_record(std::uint64_t device) const;
};

// A recorded task of a GPU.
struct DeviceTask {
  std::int64_t id = 0;     // in the record
  std::uint64_t mark = 0;  // what its launches are marked with
  std::int32_t device = 0;
  trace::Time start = 0, end = 0;
};

// What a reader wants of a kernel's name: no arguments, no return type, at most 120 characters.
std::string kernel_label(const std::string& mangled);

// Notes and tasks come in pieces, each in its own time; kernels wait here for their task.
class KernelTimes {
 public:
  void add(const cuda::KernelNotes& notes);
  void add(const DeviceTask& task);

  struct Found {
    std::int64_t task = -1;  // in the record
    std::int32_t device = 0;
    std::uint32_t name = 0;
    trace::Time start = 0, end = 0;
  };
  // The kernels whose task is known: by the mark of their launch or, without one, by the time that
  // they share most of with a task. Without `all`, a kernel waits for its marked task, or for some
  // task of its device that began after it; with `all`, a kernel of no task is left out.
  std::vector<Found> match(const ClockMatch& clock, bool all);

  std::size_t waiting() const { return kernels_.size(); }
  const std::string& name(std::uint32_t index) const { return names_[index]; }

 private:
  // A task of the record began after this time.
  bool passed(std::int32_t device, trace::Time end) const;
  std::int64_t by_time(std::int32_t device, trace::Time start, trace::Time end) const;

  std::vector<std::string> names_;
  std::vector<cuda::KernelRun> kernels_;
  std::map<std::uint32_t, std::uint64_t> marks_;                     // by correlation
  std::map<std::uint64_t, std::int64_t> marked_;                     // by mark: task
  std::map<std::int32_t, std::map<trace::Time, DeviceTask>> tasks_;  // by device, by end
};

}  // namespace regatta
