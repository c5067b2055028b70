// What tasks cost on a platform's devices: a profile's costs, scaled to their speed.
#pragma once

#include <vector>

#include "platform/platform.h"
#include "tasks/costs.h"

namespace regatta::sim {

// How the devices of one group of the plan differ from those that were measured.
struct DeviceSpeed {
  double factor = 1;            // by which forward and backward take longer than the base says
  double memory_bandwidth = 0;  // for what only moves bytes; 0: the same factor
  double uncertainty = 0;       // of an estimate; 0: the base's own interval
};

// Both references must stay.
class DeviceCosts final : public TaskCosts {
 public:
  DeviceCosts(const TaskList& list, const TaskCosts& base, std::vector<DeviceSpeed> by_group)
      : list_(list), base_(base), speeds_(std::move(by_group)) {}

  Estimate of(const Task& task, int busy) const override;
  RuntimeCosts runtime() const override { return base_.runtime(); }
  std::vector<double> spread(GroupId group) const override { return base_.spread(group); }
  // As measured on the base's machine: a device that is scaled to another speed counts as measured.
  MeasuredShares measured_shares(const TaskList& list, int busy) const override {
    return base_.measured_shares(list, busy);
  }

 private:
  const TaskList& list_;
  const TaskCosts& base_;
  std::vector<DeviceSpeed> speeds_;
};

// FLOP a second that one worker of a group sustains over its forward and backward tasks.
double sustained_flops(const TaskList& list, const TaskCosts& costs, GroupId group);

// How a platform's group is faster or slower than what `base` was measured on. As measured, if the
// costs are a profile's own.
DeviceSpeed speed_of(const PlatformGroup& device, const TaskList& list, const TaskCosts& base,
                     GroupId group);

}  // namespace regatta::sim
