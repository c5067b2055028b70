#include "optimize/problem.h"

#include <array>

#include "base/error.h"

namespace regatta::optimize {
namespace {

constexpr std::array<std::string_view, 4> objective_names{"time", "energy", "edp", "cost"};

}  // namespace

double Problem::gradient_bytes() const {
  double bytes = 0;
  for (const SegmentTraffic& segment : segments) bytes += segment.gradient_bytes;
  return bytes;
}

std::string_view objective_name(Objective objective) {
  return objective_names[static_cast<std::size_t>(objective)];
}

Objective objective_named(std::string_view name) {
  for (std::size_t i = 0; i < objective_names.size(); ++i)
    if (objective_names[i] == name) return static_cast<Objective>(i);
  throw InputError("--objective " + std::string(name) + ": use time, energy, edp or cost");
}

bool alone(std::span<const NodeUse> uses) {
  std::int64_t devices = 0;
  for (const NodeUse& use : uses)
    for (const NodeUse::Part& part : use.parts) devices += use.nodes * part.units;
  return devices == 1;
}

CostLine share_seconds(const Problem& problem, std::span<const NodeUse> uses,
                       const DeviceState& state) {
  if (state.alone_s > 0 && alone(uses))
    return {0, state.alone_s / static_cast<double>(problem.batch)};
  return total(state.seconds);
}

double unused_watts(const Problem& problem) {
  double watts = 0;
  for (const NodeKind& node : problem.nodes)
    watts += node.unused_watts * static_cast<double>(node.count);
  return watts;
}

CostLine total(std::span<const CostLine> by_segment) {
  CostLine sum;
  for (const CostLine& each : by_segment) sum += each;
  return sum;
}

}  // namespace regatta::optimize
