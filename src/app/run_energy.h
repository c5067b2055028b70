// Joules of a whole run, group by group, each with where the figure comes from: counted by the
// machine, modelled from watts, or not known. There is no zero for what nobody knows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "exec/executor.h"
#include "platform/energy.h"
#include "platform/platform.h"

namespace regatta::app {

struct GroupJoules {
  std::string group;                  // of the plan, or the counter's own name
  std::optional<double> joules = {};  // none: not known
  bool measured = false;              // by a counter; else modelled
  std::string remark;
};

// "measured", "modelled" or "unknown"; of several, the weakest.
std::string_view source_of(const GroupJoules& joules);

// By watts of idle and active cores: all of them idle for so long, and some of them at work.
// None where the platform tells no watts.
std::optional<double> modelled_joules(const PlatformGroup& cores, double seconds,
                                      double busy_core_seconds);

// The sum of all groups, which is not known if one is not.
Json to_json(const std::vector<GroupJoules>& groups, double seconds);

// From when it is made to finish().
class RunEnergy {
 public:
  RunEnergy(const Executor& executor, const PlatformNode& machine);

  void on_step();  // counters wrap around: they are read now and then
  // The executor was replaced by another one at the same address. `done`: the load of the old one.
  void executor_ended(const WorkerLoad& done);
  std::vector<GroupJoules> finish();
  double seconds() const;

 private:
  using Clock = EnergyMeter::Clock;
  void read(Clock::time_point now);

  const Executor& executor_;
  PlatformNode machine_;
  EnergyMeter meter_;
  Clock::time_point begin_, last_;
  WorkerLoad load_;
  std::vector<Energy> sums_;
};

}  // namespace regatta::app
