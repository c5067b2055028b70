// sim/: plays the task lists of a plan on a platform before anyone sails, on SimGrid, and writes an
// ordinary trace. The only room that knows SimGrid, and in it only world.cpp does.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/clock.h"

namespace regatta::sim {

// Simulated time, in which devices work, links carry bytes and both draw power. There is one in the
// life of a process: SimGrid's engine cannot be made twice.
class World final : public Clock {
 public:
  struct Host {
    int cores = 1;
    double idle_watts = 0, active_watts = 0;  // of one core
  };
  // Messages on a link share its bytes a second evenly, as far as no other link holds them up.
  struct Shape {
    std::vector<Host> hosts;
    std::vector<double> links;             // bandwidths
    std::vector<std::vector<int>> routes;  // links, any number of them
  };
  explicit World(const Shape& shape);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  WorkId work(int host, double seconds, Then then, int cores = 1) override;
  double left(WorkId work) override;
  void stop(WorkId work) override;
  void send(int route, double bytes, Then then) override;
  // A message waits for its latency first, so that it does not change how links are shared.
  void send(int route, double bytes, Then then, double latency);
  void later(double seconds, Then then) override;
  double now() const override;

  void run();                     // until nothing is under way; may be called again
  double joules(int host) const;  // since the beginning

  // A time during which a route always had a message on its way.
  struct Traffic {
    int route = 0;
    double start = 0, end = 0, bytes = 0;
    std::int64_t messages = 0;
  };
  std::vector<Traffic> take_traffic();  // since the beginning, or since it was last taken

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::sim
