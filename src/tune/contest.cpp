#include "tune/contest.h"

#include <algorithm>
#include <numeric>

#include "profile/robust.h"

namespace regatta {
namespace {

struct Contender {
  std::size_t index;
  std::vector<double> taken = {};  // seconds of each measurement
  double behind = 1;               // its time over the fastest one's when it dropped out

  // The mean of the faster half: what disturbs a measurement makes it longer, never shorter.
  double seconds() const {
    std::vector<double> sorted = taken;
    std::ranges::sort(sorted);
    const auto half = static_cast<std::ptrdiff_t>((sorted.size() + 1) / 2);
    return std::accumulate(sorted.begin(), sorted.begin() + half, 0.0) / static_cast<double>(half);
  }
};

}  // namespace

std::vector<Seconds> contest(std::size_t count, const ContestRules& rules) {
  std::vector<Contender> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back({i});
  std::vector<Contender*> left;  // the fastest first, after each round
  for (Contender& each : all) left.push_back(&each);
  const auto time_is_up = [&] { return rules.time_left() <= Seconds(0); };
  // In turn, so that what disturbs the machine for a while hits all alike.
  const auto measure_all = [&](int repeats) {
    for (int repeat = 0; repeat < repeats; ++repeat)
      for (Contender* each : left) {
        const bool wanted = each->index < 2 && each->taken.empty();
        if (!wanted && time_is_up()) return;
        each->taken.push_back(rules.measure(each->index).count());
      }
  };
  for (int repeats = 1; left.size() > 1; repeats *= 2) {
    measure_all(repeats);
    std::erase_if(left, [](const Contender* each) { return each->taken.empty(); });
    std::ranges::stable_sort(left, {}, [](const Contender* each) { return each->seconds(); });
    const std::size_t stay = (left.size() + 1) / 2;
    for (std::size_t i = stay; i < left.size(); ++i)
      left[i]->behind = left[i]->seconds() / left.front()->seconds();
    left.resize(stay);
  }
  if (left.empty()) return {};
  // The fastest of several was measured too fast by chance: further measurements tell its time.
  Contender& fastest = *left.front();
  std::vector<double> taken;
  while (taken.size() < confirmations &&
         ((taken.empty() && fastest.taken.empty()) || !time_is_up()))
    taken.push_back(rules.measure(fastest.index).count());
  if (fastest.taken.empty()) fastest.taken = taken;  // a lone candidate had no round
  const double seconds = taken.empty() ? fastest.seconds() : median(taken);
  std::vector<Seconds> times;
  for (const Contender& each : all)
    times.emplace_back(each.taken.empty() ? 0 : seconds * each.behind);
  return times;
}

std::size_t measurements_of_contest(std::size_t candidates) {
  std::size_t all = confirmations;
  for (std::size_t left = candidates, repeats = 1; left > 1; left = (left + 1) / 2, repeats *= 2)
    all += left * repeats;
  return all;
}

}  // namespace regatta
