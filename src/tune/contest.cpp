#include "tune/contest.h"

#include <algorithm>
#include <numeric>

#include "profile/robust.h"

namespace regatta {
namespace {

struct Contender {
  std::size_t index;
  std::vector<double> taken = {};  // seconds of each measurement
  double behind = 0;  // its time over the fastest one's when it dropped out; 0: it did not

  // The mean of the faster half: what disturbs a measurement makes it longer, never shorter.
  double seconds() const {
    std::vector<double> sorted = taken;
    std::ranges::sort(sorted);
    const auto half = static_cast<std::ptrdiff_t>((sorted.size() + 1) / 2);
    return std::accumulate(sorted.begin(), sorted.begin() + half, 0.0) / static_cast<double>(half);
  }
};

class Contest {
 public:
  Contest(std::size_t count, const ContestRules& rules) : rules_(rules) {
    for (std::size_t i = 0; i < count; ++i) all_.push_back({i});
    for (Contender& each : all_) left_.push_back(&each);
  }

  std::vector<Seconds> run() {
    for (int repeats = 1; left_.size() > 1; repeats *= 2) {
      measure_all(repeats);
      halve();
    }
    const double fastest = confirmed(*left_.front());
    std::vector<Seconds> times;
    for (const Contender& each : all_)
      times.emplace_back(each.taken.empty() ? 0 : fastest * (each.behind > 0 ? each.behind : 1));
    return times;
  }

 private:
  bool time_is_up() const { return rules_.time_left() <= Seconds(0); }

  // In turn, so that what disturbs the machine for a while hits all alike.
  void measure_all(int repeats) {
    for (int repeat = 0; repeat < repeats; ++repeat)
      for (Contender* each : left_) {
        const bool wanted = each->index < 2 && each->taken.empty();
        if (!wanted && time_is_up()) return;
        each->taken.push_back(rules_.measure(each->index).count());
      }
  }

  void halve() {
    std::erase_if(left_, [](const Contender* each) { return each->taken.empty(); });
    std::ranges::stable_sort(left_, {}, [](const Contender* each) { return each->seconds(); });
    const std::size_t stay = (left_.size() + 1) / 2;
    for (std::size_t i = stay; i < left_.size(); ++i)
      left_[i]->behind = left_[i]->seconds() / left_.front()->seconds();
    left_.resize(stay);
  }

  // The fastest of several was measured too fast by chance: further measurements tell its time.
  double confirmed(Contender& fastest) const {
    std::vector<double> taken;
    while (taken.size() < confirmations && (fastest.taken.empty() || !time_is_up())) {
      taken.push_back(rules_.measure(fastest.index).count());
      if (fastest.taken.empty()) fastest.taken = taken;  // a lone candidate had no round
    }
    return taken.empty() ? fastest.seconds() : median(taken);
  }

  const ContestRules& rules_;
  std::vector<Contender> all_;
  std::vector<Contender*> left_;  // the fastest first, after each round
};

}  // namespace

std::vector<Seconds> contest(std::size_t count, const ContestRules& rules) {
  if (count == 0) return {};
  return Contest(count, rules).run();
}

std::size_t measurements_of_contest(std::size_t candidates) {
  std::size_t all = confirmations;
  for (std::size_t left = candidates, repeats = 1; left > 1; left = (left + 1) / 2, repeats *= 2)
    all += left * repeats;
  return all;
}

}  // namespace regatta
