// Tasks of one kind do not all take their typical time: caches, neighbours and the machine below
// have a say. Where workers meet, the slowest of them counts, so a prediction of a step must know
// how far they spread.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/task_list.h"

namespace regatta {

// How many times its typical seconds a task takes, as a pure function of where it stands: the same
// seed gives the same steps again.
class Spread {
 public:
  Spread() = default;  // all tasks take their typical time
  // `levels`: what the fastest part of tasks takes, the next part, ..., the slowest, each part as
  // large as the others; empty: see above.
  Spread(const Blueprint& blueprint, const TaskList& list, std::vector<double> levels, int workers,
         std::uint64_t seed = 1);

  bool none() const { return levels_.empty(); }
  double factor(std::int64_t step, std::size_t task, int worker) const;

 private:
  struct DrawKey {
    std::uint64_t kind = 0;   // tasks of all chunks that are otherwise alike
    std::uint64_t index = 0;  // among them
    std::uint64_t many = 1;
  };
  double level(double rank) const;

  std::vector<double> levels_;
  std::vector<DrawKey> keys_;  // by task
  std::uint64_t workers_ = 1, seed_ = 1;
};

}  // namespace regatta
