#include "tasks/clock.h"

#include "base/error.h"

namespace regatta {

std::uint64_t EventClock::add(double seconds, Then then) {
  const std::uint64_t number = next_++;
  events_.push({now_ + seconds, number});
  pending_.emplace(number, Pending{now_ + seconds, std::move(then)});
  return number;
}

Clock::WorkId EventClock::work(int /*host*/, double seconds, Then then, int /*cores*/) {
  return add(seconds, std::move(then));
}

void EventClock::send(int /*route*/, double /*bytes*/, Then /*then*/) {
  throw Error("internal: nothing can be sent where there are no routes");
}

void EventClock::run(const std::function<bool()>& done) {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    auto found = pending_.extract(event.number);
    if (!found) continue;
    now_ = event.time;
    found.mapped().then();
    if (done()) return;
  }
}

}  // namespace regatta
