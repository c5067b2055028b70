// What a device of a platform needs for a share of the batch, by the plan that it would follow.
#pragma once

#include <numeric>

#include "app/node_plan.h"

namespace regatta::app {

// What a device needs at least for its part of a step, in whatever order its workers do it and
// however many of them work at a time; by segment.
struct Work {
  std::vector<double> seconds, core_s;          // of the device, and of all its cores together
  std::vector<double> update_s, update_core_s;  // of the step of the parameters
  double load_s = 0, load_core_s = 0;           // of loading the samples
  double meeting_s = 0, meeting_core_s = 0;     // where gradients and statistics of chunks meet
  double chain_s = 0;  // of the first chunk, forward and back, on the fastest worker

  explicit Work(std::size_t segments = 0)
      : seconds(segments), core_s(segments), update_s(segments), update_core_s(segments) {}
};

// One device's costs of a share of some size, by segment.
struct ShareCost {
  double samples = 0;
  std::vector<double> seconds;  // of the device
  std::vector<double> forward;  // seconds of these before any backward
  std::vector<double> updates;  // seconds of what follows the exchange
  Work low, typical;            // by the lower ends of costs, and by costs as they are
  int lanes = 1, team = 1;      // chunks that may be computed at a time, and cores of each
  double bytes = 0, room = 0;   // of memory
  double measured = 0;          // the part of all seconds whose costs were measured
};

// How a device computes a share.
struct Cut {
  std::int64_t groups = 1;  // the share, counted in the batch norm's groups
  const char* segments = "block";
  int team = 0;             // as in DeviceShare
  int nodes = 1;            // that have such a share each
  std::int64_t chunks = 0;  // equal ones; 0: as plans have them unasked
  int workers = 0;          // at most so many of the cores; 0: all
};

// Looks up the costs of a platform's device. All but the options must stay.
class DeviceMeasure {
 public:
  DeviceMeasure(const Graph& graph, const Recipe& recipe, const PlatformNode& node,
                std::string group, const sim::Profiles& profiles, NodeOptions options);

  ShareCost of(const Cut& cut) const;
  // A share among several nodes: in segments whose gradients leave one by one, cut where the nodes'
  // statistics meet.
  ShareCost of_share(std::int64_t groups, int team) const {
    return of({.groups = groups, .team = team, .nodes = 2});
  }
  // In a plan for this device alone.
  ShareCost of_all(std::int64_t groups) const { return of({.groups = groups, .segments = "step"}); }
  // Seconds of computing in a plan for this device alone whose chunks are sized by the speeds of
  // its cores. Infinite: there is no such plan.
  double by_speed(std::int64_t groups) const;

 private:
  Plan plan_of(const Cut& cut, const Platform& platform) const;
  void add_work(ShareCost& cost, const Task& task, const sim::RankKind& kind,
                const DeviceGroup& group) const;

  const Graph& graph_;
  const Recipe& recipe_;
  std::string group_;
  const sim::Profiles& profiles_;
  Platform platform_;  // of this node
  NodeOptions options_;
};

inline double sum(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace regatta::app
