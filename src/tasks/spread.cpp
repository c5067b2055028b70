#include "tasks/spread.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace regatta {
namespace {

// A worker that is slow stays slow for a while: this share of its tasks in a step is equally slow.
// Measured on 16 cores, consecutive tasks of a worker have a correlation of 0.3 to 0.6.
constexpr double alike = 0.4;

double uniform(std::uint64_t key, std::uint64_t index) { return double{keyed_uniform(key, index)}; }

// Each of `many` simultaneous draws gets another part of the range, so that few draws show the
// whole of it.
double share_of(std::uint64_t key, std::uint64_t index, std::uint64_t many) {
  const std::uint64_t part = (index + keyed_bits(key, ~std::uint64_t{0}) % many) % many;
  return (static_cast<double>(part) + uniform(key, index)) / static_cast<double>(many);
}

}  // namespace

Spread::Spread(const Blueprint& blueprint, const TaskList& list, std::vector<double> levels,
               int workers, std::uint64_t seed)
    : levels_(std::move(levels)), workers_(static_cast<std::uint64_t>(workers)), seed_(seed) {
  if (levels_.empty()) return;
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    DrawKey key_of_task{.kind = random_mix(t)};
    const Action& first = list.tasks[t].actions.front();
    if (of_chunk(first.phase)) {
      key_of_task.kind = random_mix(random_mix(static_cast<std::uint64_t>(first.phase) + 1) ^
                                    (std::uint64_t{first.segment.value} << 32 | first.part));
      key_of_task.index = first.chunk.value;
      key_of_task.many = blueprint.chunks.size();
    }
    keys_.push_back(key_of_task);
  }
}

double Spread::level(double rank) const {
  const double last = static_cast<double>(levels_.size() - 1);
  const double at = std::clamp(rank * static_cast<double>(levels_.size()) - 0.5, 0.0, last);
  const auto below = static_cast<std::size_t>(at);
  const double above = levels_[std::min(below + 1, levels_.size() - 1)];
  return levels_[below] + (at - std::floor(at)) * (above - levels_[below]);
}

double Spread::factor(std::int64_t step, std::size_t task, int worker) const {
  if (none()) return 1;
  const std::uint64_t key = random_key(seed_, static_cast<std::uint64_t>(step));
  const DrawKey& key_of_task = keys_[task];
  const std::uint64_t own = random_mix(key ^ key_of_task.kind);
  if (uniform(own, ~key_of_task.index) < alike)
    return level(share_of(key, static_cast<std::uint64_t>(worker), workers_));
  return level(share_of(own, key_of_task.index, key_of_task.many));
}

}  // namespace regatta
