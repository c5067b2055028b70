#include "transport/clocks.h"

#include <chrono>
#include <limits>

namespace regatta {
namespace {

constexpr int ask_tag = 4, answer_tag = 5;
// The shortest of these round trips counts: others are lengthened by workers that use the CPU.
constexpr int round_trips = 20;

// Until the message is done or the rank at its other end lost. Without sleeping: a nap would
// lengthen the round trip, and the error with it.
void spin_for(Message& message, int rank, const Lost& lost) {
  while (!message.done() && !(lost && lost(rank))) {
  }
}

ClockOffset offset_of(Transport& transport, int rank, const ClockReading& clock, const Lost& lost) {
  ClockOffset best{.error = std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < round_trips; ++i) {
    std::int64_t there = 0;
    const std::byte question{};
    const std::int64_t before = clock();
    spin_for(*transport.send(rank, ask_tag, std::span(&question, 1)), rank, lost);
    spin_for(*transport.receive(rank, answer_tag, std::as_writable_bytes(std::span(&there, 1))),
             rank, lost);
    const std::int64_t after = clock();
    const std::int64_t middle = before + (after - before) / 2;
    // The other clock was read at some time between `before` and `after`; rounding the middle adds
    // a nanosecond to the error.
    const std::int64_t error = (after - before) / 2 + 1;
    if (error < best.error) best = {middle, there - middle, error};
  }
  return best;
}

}  // namespace

std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<ClockOffset> measure_clocks(Transport& transport, const ClockReading& clock,
                                        const Lost& lost) {
  if (transport.rank() > 0) {
    for (int i = 0; i < round_trips; ++i) {
      std::byte question{};
      spin_for(*transport.receive(0, ask_tag, std::span(&question, 1)), 0, {});
      const std::int64_t now = clock();
      spin_for(*transport.send(0, answer_tag, std::as_bytes(std::span(&now, 1))), 0, {});
    }
    return {};
  }
  std::vector<ClockOffset> offsets{{.at = clock()}};
  for (int rank = 1; rank < transport.size(); ++rank)
    offsets.push_back(offset_of(transport, rank, clock, lost));
  return offsets;
}

}  // namespace regatta
