// What all submissions of a task list have in common, looked up once: submitting must be cheap.
#pragma once

#include <vector>

#include "exec/buffers.h"
#include "exec/executor.h"
#include "tasks/placement.h"

namespace regatta {

struct PreparedList {
  using Handles = std::vector<starpu_data_handle_t>;
  using Data = std::vector<std::byte*>;

  TaskList list;
  std::vector<double> predicted;          // by task: microseconds
  std::vector<double> ranks;              // by task: how urgent it is
  StepPlaces places;                      // what the plan fixes of its tasks
  std::int64_t submitted = 0;             // times so far
  std::vector<std::size_t> first_handle;  // by task: in the lists below
  std::vector<Handles> handles;           // by place in the rings; empty: not yet looked up
  std::vector<Data> data;                 // the same by pointer, for buffers in main memory

  // The handles that the tasks access in this step, task by task.
  const Handles& handles_of(Buffers& buffers, std::size_t step);
  const Data& data_of(std::size_t step) const { return data[step % data.size()]; }
};

// Throws if the plan has an order that cannot be followed.
PreparedList prepare(const Blueprint& blueprint, ListKind job, const ExecOptions& options);

}  // namespace regatta
