// Random task graphs and a toy scheduler: records whose truth is known by construction.
#pragma once

#include <cstdint>

#include "trace/trace.h"

namespace regatta::trace {

struct ToyOptions {
  std::uint64_t seed = 1;
  int workers = 3;
  int steps = 4;
  int tasks_per_step = 20;
  bool central_queue = true;  // else each task is bound to a worker's queue when it is ready
  bool transfers = false;
};

// Tasks of random kinds and lengths, each waiting for a few earlier ones, run as soon as they are
// ready and a worker is free, after some overhead.
Record toy_run(const ToyOptions& options);

// One task after the other, by hand: worker, step, phases, start, end, and what it waits for.
class RecordBuilder {
 public:
  explicit RecordBuilder(int workers);
  // Its id.
  std::int64_t task(int worker, std::int64_t step, const std::string& phases, Time start, Time end,
                    const std::vector<std::int64_t>& on = {});
  Record record;
};

}  // namespace regatta::trace
