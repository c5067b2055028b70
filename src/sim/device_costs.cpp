#include "sim/device_costs.h"

namespace regatta::sim {
namespace {

// What a task reads and writes; what it does both with counts twice.
double bytes_touched(const TaskList& list, const Task& task) {
  double bytes = 0;
  for (const Access& access : task.accesses) {
    const auto size = static_cast<double>(bytes_of(list, access));
    bytes += access.mode == Mode::read_write || access.mode == Mode::reduce ? 2 * size : size;
  }
  return bytes;
}

}  // namespace

Estimate DeviceCosts::of(const Task& task, int busy) const {
  Estimate cost = base_.of(task, busy);
  // Loading and delivering are the host's, which is not what the group's speed speaks of.
  // A task that also computes, as that of a whole step does, goes by the group's speed.
  if (task.on_host && task.flops <= 0) return cost;
  const DeviceSpeed& speed = speeds_[task.group.value];
  double factor = speed.factor;
  if (task.flops <= 0 && speed.memory_bandwidth > 0 && cost.seconds > 0)
    factor = bytes_touched(list_, task) / speed.memory_bandwidth / cost.seconds;
  cost.seconds *= factor;
  cost.low = speed.uncertainty > 0 ? cost.seconds / speed.uncertainty : cost.low * factor;
  cost.high = speed.uncertainty > 0 ? cost.seconds * speed.uncertainty : cost.high * factor;
  return cost;
}

double sustained_flops(const TaskList& list, const TaskCosts& costs, GroupId group) {
  double flops = 0, seconds = 0;
  for (const Task& task : list.tasks) {
    if (task.group != group || task.flops <= 0) continue;
    flops += task.flops;
    seconds += costs.of(task, 1).seconds;
  }
  return seconds > 0 ? flops / seconds : 0;
}

DeviceSpeed speed_of(const PlatformGroup& device, const TaskList& list, const TaskCosts& base,
                     GroupId group) {
  if (!device.costs.estimate()) return {};
  const double sustained = sustained_flops(list, base, group);
  return {sustained > 0 ? sustained / device.costs.flops : 1, device.costs.memory_bandwidth,
          device.costs.uncertainty};
}

}  // namespace regatta::sim
