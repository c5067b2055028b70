// Joules of jobs that run side by side. A machine's counters count for all of its jobs together, so
// what they counted in a while is divided among the jobs that ran in it.
#pragma once

#include <functional>
#include <vector>

#include "platform/energy.h"

namespace regatta::tickets {

class SharedEnergy {
 public:
  // `meter` gives the joules since its last call, those of processors without a counter as an
  // estimate for one CPU.
  explicit SharedEnergy(std::function<std::vector<Energy>()> meter) : meter_(std::move(meter)) {}

  // A job under way. It must not outlive the SharedEnergy that it was made with.
  class Share {
   public:
    Share(SharedEnergy& all, int cpus);  // the job has so many CPUs to itself
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Since the job began: an equal part of what was counted while others ran too, and the estimate
    // for its own CPUs.
    Energy read();

   private:
    friend class SharedEnergy;
    SharedEnergy& all_;
    int cpus_;
    Energy energy_{.name = {}, .joules = 0, .measured = true};
  };

 private:
  void divide();  // what was counted since the last call

  std::function<std::vector<Energy>()> meter_;
  std::vector<Share*> running_;
};

}  // namespace regatta::tickets
