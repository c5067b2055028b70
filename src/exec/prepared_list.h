// What all submissions of a task list have in common, looked up once: submitting must be cheap.
#pragma once

#include <vector>

#include "exec/buffers.h"
#include "exec/executor.h"
#include "tasks/placement.h"

namespace regatta {

struct PreparedList {
  using Handles = std::vector<starpu_data_handle_t>;
  using Data = std::vector<BufferData>;

  TaskList list;
  std::vector<double> predicted;          // by task: microseconds
  std::vector<double> ranks;              // by task: how urgent it is
  StepPlaces places;                      // what the plan fixes of its tasks
  std::int64_t submitted = 0;             // times so far
  std::vector<std::size_t> first_handle;  // by task: in the lists below
  std::vector<Handles> handles;           // by place in the rings; empty: not yet looked up
  std::vector<Data> data;                 // addresses instead of handles, for tasks at gates

  // What the tasks access in this step, task by task.
  const Handles& handles_of(Buffers& buffers, std::size_t step) {
    look_up(buffers, step);
    return handles[step % handles.size()];
  }
  const Data& data_of(Buffers& buffers, std::size_t step) {
    look_up(buffers, step);
    return data[step % data.size()];
  }

 private:
  void look_up(Buffers& buffers, std::size_t step);
};

// Throws if the plan has an order that cannot be followed.
PreparedList prepare(const Blueprint& blueprint, ListKind job, const ExecOptions& options);

}  // namespace regatta
