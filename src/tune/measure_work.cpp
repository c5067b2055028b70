#include "tune/measure_work.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "exec/observe.h"
#include "profile/robust.h"
#include "profile/timings.h"
#include "tune/calibration_steps.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

class WorkMeter {
 public:
  WorkMeter(const TrainJob& job, const Measurement& wanted, double enough)
      : wanted_(wanted),
        enough_(enough),
        data_(job.recipe.data),
        steps_(job, wanted.plan),
        executor_(steps_.executor()) {
    for (const DeviceGroup* group : groups_of(executor_.plan())) {
      gpu_ |= group->kind == DeviceKind::cuda;
      chunks_ += static_cast<std::int64_t>(group->chunks.size());
      workers_ += group->workers;
      largest_ = std::max(largest_, std::ranges::max(group->chunks));
    }
    largest_ = std::min(largest_, wanted.most);
  }

  std::vector<Observation> measure(Seconds time) {
    const Clock::time_point begin = Clock::now();
    const std::vector<std::int64_t> sizes = warm_up(time);
    std::vector<Observation> all = rounds(sizes, begin, time);
    if (wanted_.of == Measurement::Of::segments)
      std::erase_if(all, [](const Observation& each) { return !of_segments(each.signature); });
    if (wanted_.of != Measurement::Of::all_sizes || gpu_) return all;
    const std::int64_t meeting = std::min(chunks_, workers_);
    const Clock::time_point measured = Clock::now();
    const Seconds for_spread = wanted_.whole ? Seconds(1) : time / 2;
    while (meeting > 1 && !spread_.enough() && Clock::now() - measured < for_spread)
      observe(std::ranges::max(sizes), true);
    std::ranges::move(spread_.observations(names_->setting(GroupId{0}), static_cast<int>(meeting)),
                      std::back_inserter(all));
    return all;
  }

 private:
  // Three have a median that ignores one that was disturbed.
  int fewest_rounds() const { return wanted_.whole ? 3 : 2; }

  std::vector<Observation> rounds(const std::vector<std::int64_t>& sizes, Clock::time_point begin,
                                  Seconds time) {
    std::vector<Observation> all;
    std::map<std::int64_t, std::vector<Observation>> by_size;
    std::set<std::int64_t> settled;
    for (int round = 0; settled.size() < sizes.size(); ++round) {
      // Round after round, so that whatever disturbs the machine for a while hits all sizes alike.
      for (const std::int64_t size : sizes) {
        if (settled.contains(size)) continue;
        if (round >= fewest_rounds() && Clock::now() - begin > time) return all;
        // The first meets cold caches, which long steps do not notice.
        const std::vector<Observation> seen = observe(size, round > 0 || in_a_row(size) == 1);
        std::ranges::copy(seen, std::back_inserter(all));
        std::ranges::copy(seen, std::back_inserter(by_size[size]));
        if (round + 1 >= fewest_rounds() && error_of(by_size[size]) < enough_) settled.insert(size);
      }
    }
    return all;
  }

  // The first runs of a size, until every worker has made its kernels for it; a GPU captures its
  // graph in the second run. Notes how long a step takes at best.
  void first_runs(std::int64_t size) {
    if (duration_.contains(size)) return;
    std::set<int> workers;
    if (!gpu_)
      executor_.watch(
          [&](const ListTimes& done) {
            for (std::size_t t = 0; t < done.times.size(); ++t)
              if (done.list.tasks[t].flops > 0) workers.insert(done.times[t].worker);
          },
          Depth::task);
    Seconds shortest{1e9};
    const auto run = [&] { shortest = std::min(shortest, steps_.run(size)); };
    for (int i = 0; gpu_ ? i < 3 : i < 8 && std::ssize(workers) < std::min(chunks_, workers_); ++i)
      run();
    executor_.watch_no_more();
    // Where one sample takes long, these tell enough of larger sizes.
    if (size > 1 && in_a_row(1) == 1)
      shortest = std::min(shortest, duration_[1] * static_cast<double>(size));
    else
      for (int i = 0; i < fewest_rounds(); ++i) run();
    duration_[size] = shortest;
  }

  // Runs the first steps of each size, the ends first, and tells those there was time for. What
  // counts is how long steps take at best: a small network is measured whole on a busy machine too.
  std::vector<std::int64_t> warm_up(Seconds time) {
    const Clock::time_point begin = Clock::now();
    first_runs(1);
    if (wanted_.of != Measurement::Of::all_sizes) {
      const std::int64_t largest = affordable(2.0 * time);
      first_runs(largest);
      return {largest};
    }
    std::vector<std::int64_t> sizes{1};
    const std::size_t surely = wanted_.whole && wanted_.half ? 3 : 2;
    Seconds at_best{0};
    for (const std::int64_t size : sizes_up_to(affordable(time))) {
      if (sizes.size() >= surely && (at_best > time / 2 || Clock::now() - begin > 3 * time)) break;
      first_runs(size);
      at_best += duration_[size] * fewest_rounds() * in_a_row(size);
      sizes.push_back(size);
    }
    return sizes;
  }

  // Whole chunks find less of their data in the caches than small ones, so they are measured if
  // a few steps of them fit; of a network that is larger still, small ones have to tell enough.
  std::int64_t affordable(Seconds time) {
    constexpr std::int64_t probe = 4;  // samples; compared with one, they give the time of a sample
    if (largest_ <= probe || wanted_.whole) return largest_;
    first_runs(probe);
    const Seconds each = (duration_[probe] - duration_[1]) / static_cast<double>(probe - 1);
    std::int64_t largest = largest_;
    while (largest > probe && 3.0 * (duration_[1] + each * static_cast<double>(largest)) > time)
      largest /= 2;
    return std::max(largest, probe);
  }

  // The largest and those that halve the way to it: powers of two, and what it is usually cut into.
  std::vector<std::int64_t> sizes_up_to(std::int64_t largest) const {
    std::vector<std::int64_t> sizes;
    const auto add = [&](std::int64_t size) {
      const bool wanted = wanted_.half || size == largest || size != largest_ / 2;
      if (size > 1 && wanted && std::ranges::find(sizes, size) == sizes.end())
        sizes.push_back(size);
    };
    add(largest);
    add(largest / 2);
    for (std::int64_t size = 2; size < largest; size *= 2) add(size);
    return sizes;
  }

  // Steps that are short are taken many in a row: between rows caches get cold, which the first of
  // them pays for and is left out. On a GPU tasks queue up, and would count the wait of each other.
  int in_a_row(std::int64_t size) const {
    constexpr Seconds row{0.03};  // ten periods of the system's scheduler
    return gpu_ ? 1 : static_cast<int>(std::clamp<double>(row / duration_.at(size), 1, many_lists));
  }

  // Runs steps of this size in a row and returns their times; nothing unless they are to count.
  std::vector<Observation> observe(std::int64_t size, bool counts) {
    const Seconds at_best = duration_[size];
    const int count = in_a_row(size);
    std::vector<std::vector<TaskTimes>> taken;
    std::vector<ChunkSpan> spans;
    const Blueprint* blueprint = nullptr;
    const TaskList* list = nullptr;
    // The CPU time of operators is asked for where they take 0.2 ms or more: asking is a system
    // call, which shorter ones would notice.
    const bool large_operators =
        at_best.count() / static_cast<double>(executor_.graph().nodes().size()) > 2e-4;
    executor_.watch(
        [&](const ListTimes& done) {
          blueprint = &done.blueprint;
          list = &done.list;
          spans.assign(done.spans.begin(), done.spans.end());
          taken.emplace_back(done.times.begin(), done.times.end());
        },
        large_operators ? Depth::large_operators : Depth::operators);
    duration_[size] = std::min(at_best, steps_.run(size, count) / count);
    executor_.watch_no_more();
    if (!names_) names_.emplace(*blueprint, data_, Pass::train);
    // Reduce, update and pack tasks are timed in large steps only: in small ones all their data is
    // in the caches.
    const bool large = 2 * size >= duration_.rbegin()->first;
    // Tasks tell how far they spread where they are whole steps of a chunk: those do for all plans.
    const bool spreads = large && !gpu_ && executor_.plan().segments.size() == 1;
    StepMean mean;
    for (std::size_t i = count > 1 ? 1 : 0; counts && i < taken.size(); ++i) {
      const ListTimes done{*blueprint, *list, spans, taken[i]};
      if (spreads) spread_.add(done);
      mean.add(done, observations_of(done, *names_, large));
    }
    return mean.get();
  }

  // The error of the sum of all that was observed of a size, as a share.
  static double error_of(const std::vector<Observation>& seen) {
    double errors = 0, total = 0;
    for (const auto& [what, seconds] : timings_of(seen)) {
      const Typical found = typical(seconds);
      errors += found.value * found.error();
      total += found.value;
    }
    return total > 0 ? errors / total : 1;
  }

  const Measurement& wanted_;
  double enough_;
  std::string data_;
  CalibrationSteps steps_;
  Executor& executor_;
  std::optional<CostNames> names_;
  SpreadMeter spread_;
  std::map<std::int64_t, Seconds> duration_;  // of a step, by size, at best
  bool gpu_ = false;
  std::int64_t chunks_ = 0, workers_ = 0, largest_ = 0;
};

}  // namespace

std::vector<Observation> measure_work(const TrainJob& job, const Measurement& wanted, double enough,
                                      Seconds time) {
  return WorkMeter(job, wanted, enough).measure(time);
}

}  // namespace regatta
