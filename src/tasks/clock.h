// Simulated time, as the node engine sees it. Two implementations: EventClock, an event heap for
// choosing between plans, and sim::World, SimGrid with hosts, links and watts.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

namespace regatta {

class Clock {
 public:
  using Then = std::function<void()>;
  using WorkId = std::uint64_t;

  virtual ~Clock() = default;
  virtual double now() const = 0;  // seconds
  // Calls `then` once the given seconds have passed.
  virtual void later(double seconds, Then then) = 0;
  // Keeps `cores` of a host busy for so many seconds, longer if the host has too few cores for all
  // that work on it.
  virtual WorkId work(int host, double seconds, Then then, int cores) = 0;
  // Seconds that are left of work whose `then` has not been called; 0: it ends now.
  virtual double left(WorkId work) = 0;
  // Gives up work that has not ended; its `then` is not called.
  virtual void stop(WorkId work) = 0;
  // Sends bytes over a route.
  virtual void send(int route, double bytes, Then then) = 0;
};

// Every host has cores enough, and nothing is sent: the engine is given no routes.
class EventClock final : public Clock {
 public:
  double now() const override { return now_; }
  void later(double seconds, Then then) override { add(seconds, std::move(then)); }
  WorkId work(int host, double seconds, Then then, int cores) override;
  double left(WorkId work) override { return pending_.at(work).time - now_; }
  void stop(WorkId work) override { pending_.erase(work); }
  void send(int route, double bytes, Then then) override;

  // Carries out events in the order of their times, those of one time in the order they were added;
  // returns when `done` says so after an event, or when none is left.
  void run(const std::function<bool()>& done);

 private:
  struct Event {
    double time = 0;
    std::uint64_t number = 0;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  struct Pending {
    double time = 0;
    Then then;
  };
  std::uint64_t add(double seconds, Then then);

  double now_ = 0;
  std::uint64_t next_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::unordered_map<std::uint64_t, Pending> pending_;  // by number; stopped work is not here
};

}  // namespace regatta
