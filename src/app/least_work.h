// What no plan undercuts on a device: the costs that bounds are proven from.
#pragma once

#include "app/device_work.h"
#include "optimize/problem.h"

namespace regatta::app {

// The least that chunks of any size, any team and any number of workers need.
class LeastWork {
 public:
  LeastWork(const DeviceMeasure& measure, const PlatformGroup& group, std::int64_t batch);

  // By this end of the costs' intervals. `shares`: by segment, the model's cost of a share among
  // several devices, which the bound may not be above; `speed`: of a power state, whose cores draw
  // `watts` beyond idle; `accumulate`: batches before each step of the parameters.
  optimize::LeastCosts costs(const Work ShareCost::*end,
                             const std::vector<optimize::CostLine>& shares, double speed,
                             double watts, double accumulate) const;

 private:
  // A size of chunks, a team and a number of workers: in a segment for each block, and in one.
  struct Way {
    std::int64_t size;
    ShareCost by_blocks, in_one;
  };

  template <class Amount>
  double least_of(ShareCost Way::*cost, const Work ShareCost::*end, const Amount& amount) const;
  void add_chunks(optimize::LeastCosts& least, const Work ShareCost::*end, double speed,
                  double watts, double load_s, double load_j) const;

  std::int64_t batch_;
  // Whether updates and loading have costs of their own. They have none in an estimate in FLOP/s,
  // which prices a task by its FLOPs alone, nor on a GPU, whose tasks are measured whole.
  bool known_by_task_;
  std::vector<Way> ways_;
};

}  // namespace regatta::app
