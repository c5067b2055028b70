// Joules of jobs that run side by side on one machine. The machine's counters count for all jobs
// together; whenever a job starts, ends or is read, the joules since the last time are divided
// equally among the jobs that run.
#pragma once

#include <functional>
#include <vector>

#include "platform/energy.h"

namespace regatta::tickets {

class SharedEnergy {
 public:
  // `meter` returns the joules since its last call, by device. For processors without a counter its
  // entry "cpu" is an estimate (Energy::measured is false) for one CPU.
  explicit SharedEnergy(std::function<std::vector<Energy>()> meter) : meter_(std::move(meter)) {}

  // The joules of one job; it lives as long as the job runs. It must not outlive the SharedEnergy.
  class Share {
   public:
    Share(SharedEnergy& all, int cpus);  // `cpus`: how many CPUs the job has to itself
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Joules since the job began: its equal part of what was counted, and where processors have no
    // counter the estimate for its own CPUs.
    Energy read();

   private:
    friend class SharedEnergy;
    SharedEnergy& all_;
    int cpus_;
    Energy energy_{.name = {}, .joules = 0, .measured = true};
  };

 private:
  void divide();  // adds the joules since the last call to the running jobs

  std::function<std::vector<Energy>()> meter_;
  std::vector<Share*> running_;
};

}  // namespace regatta::tickets
