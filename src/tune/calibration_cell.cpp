#include "tune/calibration_cell.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/random.h"
#include "exec/executor.h"
#include "exec/observe.h"
#include "profile/robust.h"
#include "train/batches.h"
#include "train/weights.h"

namespace regatta {
namespace {

// How many lists of 50 us to 1 ms each are run in a row; medians over them are taken.
constexpr int many_lists = 60;

}  // namespace

class CalibrationCell::Impl {
 public:
  Impl(const Graph& graph, const Recipe& recipe, std::shared_ptr<const Dataset> data,
       const CalibrationOptions& options, const PlanOptions& plan, const Sizes& sizes)
      : sizes_(sizes),
        recipe_(recipe),
        data_(std::move(data)),
        options_(options),
        executor_(graph, make_plan(graph, recipe_, plan),
                  {{recipe_.loaded_dtype(), recipe_.precision, recipe_.optimizer},
                   recipe_.normalisation,
                   true,
                   recipe_.seed}) {
    initialise_roughly(executor_, recipe_.seed);
    if (data_)
      visits_ = {data_, std::make_shared<const std::vector<std::int64_t>>(
                            data_->order(recipe_.seed, 0, recipe_.shuffle))};
    for (const DeviceGroup* group : groups_of(executor_.plan())) {
      gpu_ |= group->kind == DeviceKind::cuda;
      chunks_ += static_cast<std::int64_t>(group->chunks.size());
      workers_ += group->workers;
      largest_ = std::max(largest_, std::ranges::max(group->chunks));
    }
    largest_ = std::min(largest_, sizes.most);
  }

  std::vector<Observation> measure(Of of, Seconds time) {
    const Clock::time_point until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    const std::vector<std::int64_t> sizes =
        of == Of::all_sizes ? warm_up(time) : std::vector{largest_size(time)};
    std::vector<Observation> all = rounds(sizes, until);
    if (of == Of::segments)
      std::erase_if(all, [](const Observation& each) { return !of_segments(each.signature); });
    if (of != Of::all_sizes || !names_ || gpu_) return all;
    const std::int64_t meeting = std::min(chunks_, workers_);
    const Clock::time_point late = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                      sizes_.whole ? Seconds(1) : time / 2);
    while (meeting > 1 && !spread_.enough() && Clock::now() < late)
      observe(std::ranges::max(sizes), true);
    const std::vector<Observation> spread =
        spread_.observations(names_->place(GroupId{0}), static_cast<int>(meeting));
    all.insert(all.end(), spread.begin(), spread.end());
    return all;
  }

  // What the runtime takes to start tasks, from a plan of many that meet.
  std::vector<Observation> measure_starts() { return watched(start_observations_of); }

  // Seconds that the submitting thread takes for such tasks, their buffers and a step.
  std::vector<Observation> measure_submission() {
    double tasks = 0, buffers = 0;  // of a list
    std::vector<Observation> all = watched([&](const ListTimes& done) {
      tasks = static_cast<double>(done.list.tasks.size());
      buffers = 0;
      for (const Task& task : done.list.tasks) buffers += static_cast<double>(task.accesses.size());
      return submission_observations_of(done);
    });
    Profile so_far;
    so_far.learn(all);
    const RuntimeCosts costs = so_far.runtime();
    const double by_task = tasks * costs.submission + buffers * costs.dependency;
    // Looking at the clock for every task takes its time too: together they take no longer than a
    // list that is not watched. The time of such a list beyond its tasks' is the step's.
    const double submitting = median(seconds_to_submit());
    const double part = std::min(1.0, submitting / by_task);
    for (Observation& each : all) each.seconds *= part;
    for (const double waiting : seconds_to_take_note())
      all.push_back({"runtime step", 1, 1, std::max(1e-7, waiting + submitting - part * by_task)});
    return all;
  }

 private:
  // Three have a median that ignores one that was disturbed.
  int fewest_rounds() const { return sizes_.whole ? 3 : 2; }

  // Whether tasks tell how far they spread: those of whole steps do, for all plans.
  bool spreads() const { return !gpu_ && executor_.plan().segments.size() == 1; }

  // Runs single steps and gathers what `look` makes of each.
  template <class Look>
  std::vector<Observation> watched(const Look& look) {
    steps(largest_, 1);
    std::vector<Observation> all;
    executor_.watch(
        [&](const ListTimes& done) {
          const std::vector<Observation> seen = look(done);
          all.insert(all.end(), seen.begin(), seen.end());
        },
        Depth::task);
    for (int i = 0; i < many_lists; ++i) steps(largest_, 1);
    executor_.watch_no_more();
    return all;
  }

  std::vector<Observation> rounds(const std::vector<std::int64_t>& sizes, Clock::time_point until) {
    std::vector<Observation> all;
    std::map<std::int64_t, std::vector<Observation>> by_size;
    std::set<std::int64_t> settled;
    for (int round = 0; settled.size() < sizes.size(); ++round) {
      // Round after round, so that whatever disturbs the machine for a while hits all sizes alike.
      for (const std::int64_t size : sizes) {
        if (settled.contains(size)) continue;
        if (round >= fewest_rounds() && Clock::now() > until) return all;
        // The first meets cold caches, which long steps do not notice.
        std::vector<Observation> seen = observe(size, round > 0 || in_a_row(size) == 1);
        all.insert(all.end(), seen.begin(), seen.end());
        std::vector<Observation>& so_far = by_size[size];
        so_far.insert(so_far.end(), seen.begin(), seen.end());
        if (round + 1 >= fewest_rounds() && error_of(so_far) < options_.enough)
          settled.insert(size);
      }
    }
    return all;
  }

  // CPU time of the submitting thread to hand over a list while the one before is carried out, as
  // in training.
  std::vector<double> seconds_to_submit() {
    std::vector<double> seconds;
    Ticket flying;
    for (int i = 0; i < many_lists; ++i) {
      const Seconds begin = thread_time();
      const Ticket next = executor_.submit(ListKind::train, input(largest_));
      seconds.push_back(Seconds(thread_time() - begin).count());
      if (flying) executor_.wait(flying);
      flying = next;
    }
    executor_.wait(flying);
    return seconds;
  }
  // CPU time of the submitting thread to take note that a list is done; for lists that take less
  // than a millisecond.
  std::vector<double> seconds_to_take_note() {
    std::vector<double> seconds;
    for (int i = 0; i < many_lists; ++i) {
      const Ticket ticket = executor_.submit(ListKind::train, input(largest_));
      // The list is done by then. This thread spins: a sleep would make it slower afterwards.
      for (const auto now = Clock::now(); Clock::now() - now < std::chrono::milliseconds(1);) {
      }
      const Seconds finished = thread_time();
      executor_.wait(ticket);
      seconds.push_back(Seconds(thread_time() - finished).count());
    }
    return seconds;
  }

  void first_look(std::int64_t size) {
    if (duration_.contains(size)) return;
    const Seconds begun = first_runs(size);
    // Where one sample takes long, a single run of larger sizes tells enough.
    const bool large = size > 1 && in_a_row(1) == 1;
    duration_[size] =
        large ? std::min(begun, duration_[1] * static_cast<double>(size)) : shortest_step(size);
  }

  std::int64_t largest_size(Seconds time) {
    first_look(1);
    const std::int64_t size = affordable(2.0 * time);
    first_look(size);
    return size;
  }

  // Runs the first steps of each size, the ends first, and tells those there was time for. What
  // counts is how long steps take at best: a small network is measured whole on a busy machine too.
  std::vector<std::int64_t> warm_up(Seconds time) {
    const Clock::time_point begin = Clock::now();
    first_look(1);
    std::vector<std::int64_t> sizes{1};
    const std::size_t surely = sizes_.whole && sizes_.half ? 3 : 2;
    Seconds at_best{0};
    for (const std::int64_t size : sizes_up_to(affordable(time))) {
      if (sizes.size() >= surely && (at_best > time / 2 || Clock::now() - begin > 3 * time)) break;
      first_look(size);
      at_best += duration_[size] * fewest_rounds() * in_a_row(size);
      sizes.push_back(size);
    }
    return sizes;
  }

  // Whole chunks find less of their data in the caches than small ones, so they are measured if
  // a few steps of them fit; of a network that is larger still, small ones have to tell enough.
  std::int64_t affordable(Seconds time) {
    constexpr std::int64_t probe = 4;  // samples; compared with one, they give the time of a sample
    if (largest_ <= probe || sizes_.whole) return largest_;
    first_look(probe);
    const Seconds each = (duration_[probe] - duration_[1]) / static_cast<double>(probe - 1);
    std::int64_t largest = largest_;
    while (largest > probe && 3.0 * (duration_[1] + each * static_cast<double>(largest)) > time)
      largest /= 2;
    return std::max(largest, probe);
  }

  // Until every worker has made its kernels for the size. A GPU captures its graph in the second
  // run. Tells how long the shortest took.
  Seconds first_runs(std::int64_t size) {
    Seconds shortest{1e9};
    const auto run = [&] {
      const Clock::time_point begin = Clock::now();
      steps(size, 1);
      shortest = std::min(shortest, Seconds(Clock::now() - begin));
    };
    if (gpu_) {
      for (int i = 0; i < 3; ++i) run();
      return shortest;
    }
    std::set<int> workers;
    executor_.watch(
        [&](const ListTimes& done) {
          for (std::size_t t = 0; t < done.times.size(); ++t)
            if (done.list.tasks[t].flops > 0) workers.insert(done.times[t].worker);
        },
        Depth::task);
    for (int i = 0; i < 8 && std::ssize(workers) < std::min(chunks_, workers_); ++i) run();
    executor_.watch_no_more();
    return shortest;
  }

  Seconds shortest_step(std::int64_t size) {
    Seconds shortest{1e9};
    for (int i = 0; i < fewest_rounds(); ++i) {
      const Clock::time_point begin = Clock::now();
      steps(size, 1);
      shortest = std::min(shortest, Seconds(Clock::now() - begin));
    }
    return shortest;
  }

  // The largest and those that halve the way to it: powers of two, and what it is usually cut into.
  std::vector<std::int64_t> sizes_up_to(std::int64_t largest) const {
    std::vector<std::int64_t> sizes;
    const auto add = [&](std::int64_t size) {
      const bool wanted = sizes_.half || size == largest || size != largest_ / 2;
      if (size > 1 && wanted && std::ranges::find(sizes, size) == sizes.end())
        sizes.push_back(size);
    };
    add(largest);
    add(largest / 2);
    for (std::int64_t size = 2; size < largest; size *= 2) add(size);
    return sizes;
  }

  // Steps with so many live samples in each chunk, in a row, as training has them.
  void steps(std::int64_t size, int count) {
    Ticket flying;
    for (int i = 0; i < count; ++i) {
      const Ticket next = executor_.submit(ListKind::train, input(size));
      if (flying) executor_.wait(flying);
      flying = next;
    }
    executor_.wait(flying);
  }

  StepInput input(std::int64_t size) {
    StepInput input;
    const std::int64_t samples = std::min(size * chunks_, recipe_.batch);
    if (data_) {
      // Other samples each time, as in training: those of the step before are still in the caches.
      if (next_ + samples > std::ssize(*visits_.order)) next_ = 0;
      input = train_batch(visits_, next_, samples, recipe_, 0);
      next_ += samples;
    } else {
      input.samples = samples;
      input.load = [this](std::int64_t first, std::int64_t count, std::byte* to, Target* targets) {
        fill(first, count, to, targets);
      };
    }
    input.keeps_groups = false;
    input.learning_rate = 0;  // however long it is measured, nothing runs away
    return input;
  }

  void fill(std::int64_t first, std::int64_t count, std::byte* to, Target* targets) const {
    const std::int64_t elements = recipe_.input.elements();
    const std::uint64_t key = random_key(recipe_.seed, stream_of("calibrate"));
    for (std::int64_t i = 0; i < count * elements; ++i) {
      const std::uint64_t bits = keyed_bits(key, static_cast<std::uint64_t>(first * elements + i));
      if (recipe_.loaded_dtype() == Dtype::u8) {
        to[i] = static_cast<std::byte>(bits & 0xff);
      } else {
        const float value = static_cast<float>(bits % 1000) / 1000.0f;
        std::memcpy(to + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
      }
    }
    for (std::int64_t i = 0; i < count; ++i)
      targets[i] = Target::of(static_cast<std::int32_t>((first + i) % recipe_.classes));
  }

  // Steps that are short are taken many in a row: between rows caches get cold, which the first of
  // them pays for and is left out. On a GPU tasks queue up, and would count the wait of each other.
  int in_a_row(std::int64_t size) const {
    constexpr Seconds row{0.03};  // ten periods of the system's scheduler
    return gpu_ ? 1 : static_cast<int>(std::clamp<double>(row / duration_.at(size), 1, many_lists));
  }

  std::vector<Observation> observe(std::int64_t size, bool counts) {
    const Seconds& last = duration_[size];
    const int count = in_a_row(size);
    std::vector<std::vector<TaskTimes>> taken;
    std::vector<ChunkSpan> spans;
    const Blueprint* blueprint = nullptr;
    const TaskList* list = nullptr;
    const Depth depth = last.count() / static_cast<double>(executor_.graph().nodes().size()) > 2e-4
                            ? Depth::large_operators
                            : Depth::operators;
    executor_.watch(
        [&](const ListTimes& done) {
          blueprint = &done.blueprint;
          list = &done.list;
          spans.assign(done.spans.begin(), done.spans.end());
          taken.emplace_back(done.times.begin(), done.times.end());
        },
        depth);
    const Clock::time_point begin = Clock::now();
    steps(size, count);
    duration_[size] = std::min(last, Seconds(Clock::now() - begin) / count);
    executor_.watch_no_more();
    if (!names_) names_.emplace(*blueprint, recipe_.data, Pass::train);
    // Reduce, update and pack tasks are timed in large steps only: in small ones all their data is
    // in the caches.
    const bool large = 2 * size >= duration_.rbegin()->first;
    StepMean mean;
    for (std::size_t i = count > 1 ? 1 : 0; counts && i < taken.size(); ++i) {
      const ListTimes done{*blueprint, *list, spans, taken[i]};
      if (large && spreads()) spread_.add(done);
      mean.add(done, observations_of(done, *names_, large));
    }
    std::vector<Observation> seen = mean.get();
    if (!data_)
      std::erase_if(seen, [](const auto& each) { return each.signature.starts_with("load "); });
    return seen;
  }

  // The error of the sum of all that was observed of a size, as a share.
  static double error_of(const std::vector<Observation>& seen) {
    std::map<std::tuple<std::string_view, double, int>, std::vector<double>> timings;
    for (const Observation& each : seen)
      timings[{each.signature, each.size, each.busy}].push_back(each.seconds);
    double errors = 0, total = 0;
    for (const auto& [what, seconds] : timings) {
      const Typical found = typical(seconds);
      errors += found.value * found.error();
      total += found.value;
    }
    return total > 0 ? errors / total : 1;
  }

  Sizes sizes_;
  Recipe recipe_;
  std::shared_ptr<const Dataset> data_;
  Visits visits_;
  const CalibrationOptions& options_;
  Executor executor_;
  std::optional<CostNames> names_;
  SpreadMeter spread_;
  std::map<std::int64_t, Seconds> duration_;  // of a step, by size, at best
  bool gpu_ = false;
  std::int64_t chunks_ = 0, workers_ = 0, largest_ = 0;
  std::int64_t next_ = 0;  // sample
};

CalibrationCell::CalibrationCell(const Graph& graph, const Recipe& recipe,
                                 std::shared_ptr<const Dataset> data,
                                 const CalibrationOptions& options, const PlanOptions& plan,
                                 const Sizes& sizes)
    : impl_(std::make_unique<Impl>(graph, recipe, std::move(data), options, plan, sizes)) {}
CalibrationCell::~CalibrationCell() = default;

std::vector<Observation> CalibrationCell::measure(Of of, Seconds time) {
  return impl_->measure(of, time);
}
std::vector<Observation> CalibrationCell::measure_starts() { return impl_->measure_starts(); }
std::vector<Observation> CalibrationCell::measure_submission() {
  return impl_->measure_submission();
}
}  // namespace regatta
