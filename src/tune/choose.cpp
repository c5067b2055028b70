#include "tune/choose.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/formatted.h"
#include "plan/segments.h"
#include "plan/shares.h"
#include "tune/choose_devices.h"

namespace regatta {
namespace {

// How many of the best of each kind go on to be varied in the next respect. Of 168 choices for
// made-up machines, networks and batches none is predicted to be 1% faster with 8, for 1.4 times as
// many plans; with 2, one is 2% slower.
constexpr std::size_t kept = 4;
// Cut or gathered otherwise, the work of a step takes at least this share of what it takes one
// worker: caches and fewer passes over memory have never saved more.
constexpr double least_work = 0.5;
// The share of loading in a step's work above which it is done ahead, where it fills gaps and a
// slow file delays no other chunk.
constexpr double cheap_loading = 0.1;
// A step of more tasks spends more than 10 ms on the runtime alone.
constexpr std::int64_t most_tasks = 6000;

// How many steps to keep in flight if a step takes at least `least` seconds: some milliseconds of
// work lie ahead, so that a submitting thread that loses its CPU for a time slice of the system
// holds up no worker.
int steps_in_flight(double least) {
  constexpr double ahead = 8e-3;
  constexpr int most = 8;
  return static_cast<int>(std::clamp<double>(ahead / least, Plan{}.steps_in_flight, most));
}

// Where a plan lies among all that could be made.
struct Point {
  int workers = 1, team = 1;
  std::vector<std::int64_t> chunks{1};  // one number: equal ones
  std::string segments = "step";
  std::int64_t lanes = 0;         // 0: one for each worker
  std::int64_t bucket_bytes = 0;  // 0: the plan's default
  Reduction reduction = Reduction::slots;
  bool gather_loads = false;
  Backward backward = Backward::whole;

  PlanKind kind() const { return kind_of({segments, 0, team, workers, 0}); }
  auto operator<=>(const Point&) const = default;
};

Granularity granularity_of(const Plan& plan, const std::string& segments) {
  Granularity made{segments, 0, 1, 0, 0};
  for (const DeviceGroup* group : groups_of(plan)) {
    made.chunks += group->chunks.size();
    if (group->kind == DeviceKind::cpu) {
      made.team = group->team;
      made.workers += group->workers;
    } else {
      made.gpu_share += share_of(*group);
    }
  }
  return made;
}

Candidate played_candidate(const PricedStep& step, const std::string& segments, double known) {
  const Played played = step.play();
  return {step.plan(),
          granularity_of(step.plan(), segments),
          Seconds(played.step_seconds),
          played.total,
          step.list().tasks.size(),
          known};
}

class Search {
 public:
  Search(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
         const CostsFor& costs, const PlanFits& fits)
      : graph_(graph),
        recipe_(recipe),
        options_(options),
        costs_(costs),
        fits_(fits),
        granule_(granule_of(graph)) {
    options_.workers = cpus_to_compute(options);
  }

  Choice run() {
    const Plan by_rule_of_thumb = make_plan(graph_, recipe_, options_);
    require_valid(by_rule_of_thumb, graph_, recipe_.batch);
    if (const Candidate thumb = candidate_of(graph_, recipe_, by_rule_of_thumb, costs_);
        thumb.known < mostly_measured)
      return {.candidates = {fitting(thumb)}, .compared = 1, .by_costs = false};
    // Plans with many threads come first: their times rule out most others, which are not lowered.
    std::vector<Point> points = cuts();
    std::ranges::stable_sort(points, std::greater{}, threads_of);
    const auto whole = std::ranges::find_if(points, [](const Point& point) {
      return threads_of(point) == 1 && chunk_count(point) == 1;
    });
    if (whole != points.end()) consider(*whole);
    for (const Point& point : points) consider(point);
    for (const auto others : {&Search::gatherings, &Search::split_backwards, &Search::reductions,
                              &Search::uneven, &Search::gathered_loads})
      vary(others);
    return result();
  }

 private:
  std::int64_t samples() const {
    if (options_.devices.size() == 1 || !options_.shares) return recipe_.batch;
    for (std::size_t i = 0; i < options_.devices.size(); ++i)
      if (options_.devices[i] == DeviceKind::cpu) return (*options_.shares)[i];
    return recipe_.batch;
  }

  // Chunks that they can be cut into, at most.
  std::int64_t pieces() const { return granules_of(graph_, samples()); }

  // Numbers of workers worth a look: all up to four, then fewer and fewer.
  std::vector<int> worker_counts(int most) const {
    std::set<int> counts{1, most};
    for (int n = 2; n < most; n = n < 4 ? n + 1 : n * 2) counts.insert(n);
    if (most > 4) counts.insert({most - 1, most - most / 4});
    return {counts.begin(), counts.end()};
  }
  std::vector<int> teams() const {
    if (options_.team) return {*options_.team};
    std::vector<int> sizes{1};
    for (int n = options_.workers; n > 1; n /= 2) sizes.push_back(n);
    return sizes;
  }
  std::vector<std::int64_t> chunk_counts(int workers) const {
    std::set<std::int64_t> counts{1};
    for (const std::int64_t times : {1, 2, 3, 4}) counts.insert(times * workers);
    if (workers == 1) counts.insert(8);
    std::erase_if(counts, [&](std::int64_t count) { return count > pieces(); });
    // As many chunks as samples, or groups of them, is the end of cutting.
    if (pieces() <= 4 * workers) counts.insert(pieces());
    return {counts.begin(), counts.end()};
  }

  std::vector<Point> cuts() const {
    std::vector<Point> points;
    Point point;
    point.segments = options_.segments.value_or("step");
    point.reduction = options_.reduction;
    point.backward = options_.backward.value_or(Backward::whole);
    for (const int team : teams())
      for (const int workers : worker_counts(options_.workers / team)) {
        point.team = team;
        point.workers = workers;
        if (options_.chunks) {
          point.chunks = *options_.chunks;
          points.push_back(point);
          continue;
        }
        for (const std::int64_t count : chunk_counts(workers)) {
          // Workers without a chunk are of no use, one that takes several may be.
          if (count < workers && !(count == 1 && workers > 1 && point.segments != "step")) continue;
          point.chunks = {count};
          points.push_back(point);
        }
      }
    return points;
  }

  std::vector<Point> gatherings(const Point& point) const {
    if (options_.segments) return {};
    std::vector<Point> points;
    const std::int64_t operators = std::ssize(graph_.nodes());
    for (const std::string segments : {"block", "2", "4", "8", "op"}) {
      const bool too_many = segments == "op" && 2 * operators * chunk_count(point) > most_tasks;
      if (std::atoi(segments.c_str()) > operators || too_many) continue;
      points.push_back(point);
      points.back().segments = segments;
    }
    return points;
  }

  // Weight gradients fill gaps at the meetings of a cut batch; without meetings there are none.
  std::vector<Point> split_backwards(const Point& point) const {
    const bool gaps =
        chunk_count(point) > 1 && point.workers > 1 && std::ranges::any_of(graph_.nodes(), meets);
    if (options_.backward || !gaps) return {};
    Point split = point;
    split.backward = Backward::split;
    return {split};
  }

  std::vector<Point> reductions(const Point& point) const {
    if (chunk_count(point) == 1) return {};
    std::vector<Point> points;
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{1} << 18})
      points.emplace_back(point).bucket_bytes = bytes;
    if (point.reduction != Reduction::slots) return points;
    for (const std::int64_t divisor : {2, 4})
      if (const auto lanes = std::min<std::int64_t>(chunk_count(point), point.workers) / divisor;
          lanes >= 1)
        points.emplace_back(point).lanes = lanes;
    points.emplace_back(point).reduction = Reduction::loop;
    return points;
  }

  // Large chunks first, small ones to fill the end.
  std::vector<Point> uneven(const Point& point) const {
    if (options_.chunks || point.chunks.size() > 1 || point.workers < 2) return {};
    const std::int64_t count = chunk_count(point);
    if (count < 2 * point.workers || pieces() < 2 * count) return {};
    std::vector<double> sizes(static_cast<std::size_t>(count), 3);
    std::fill_n(sizes.rbegin(), point.workers, 2);  // the last round has two thirds
    Point tapered = point;
    tapered.chunks = shares_by_speed(sizes, samples(), granule_);
    return {tapered};
  }

  std::vector<Point> gathered_loads(const Point& point) const {
    // One chunk in one segment is one task anyway.
    if (chunk_count(point) == 1 && point.segments == "step") return {};
    if (loading_share(point) > cheap_loading) return {};
    Point gathered = point;
    gathered.gather_loads = true;
    return {gathered};
  }

  // The share of loading in all that a step's tasks are predicted to take.
  double loading_share(const Point& point) const {
    const PricedStep step(graph_, recipe_, plan_of(point), costs_);
    double loading = 0, all = 0;
    for (const Task& task : step.list().tasks) {
      const double seconds = step.costs().of(task, point.workers).seconds;
      all += seconds;
      if (task.actions.front().phase == Phase::load) loading += seconds;
    }
    return all > 0 ? loading / all : 0;
  }

  static int threads_of(const Point& point) { return point.workers * point.team; }
  static std::int64_t chunk_count(const Point& point) {
    return point.chunks.size() > 1 ? std::ssize(point.chunks) : point.chunks.front();
  }

  // Considers others like the best of each kind.
  void vary(std::vector<Point> (Search::*others)(const Point&) const) {
    std::vector<std::pair<Seconds, Point>> all;
    for (const auto& [point, candidate] : played_) all.emplace_back(candidate.predicted, point);
    std::ranges::sort(all);
    std::map<PlanKind, std::size_t> taken;
    for (const auto& [seconds, point] : all)
      if (seconds <= kind_error * all.front().first && taken[point.kind()]++ < kept)
        for (const Point& other : (this->*others)(point)) consider(other);
  }

  Plan plan_of(const Point& point) const {
    PlanOptions options = options_;
    options.workers = point.workers * point.team;
    options.team = point.team;
    options.chunks = point.chunks;
    options.segments = point.segments;
    options.reduction = point.reduction;
    options.backward = point.backward;
    Plan plan = make_plan(graph_, recipe_, options);
    for (DeviceGroup& group : plan.nodes.front().groups)
      if (group.kind == DeviceKind::cpu && point.lanes > 0)
        group.lanes = static_cast<int>(std::min<std::int64_t>(point.lanes, group.lanes));
    if (point.bucket_bytes > 0) plan.bucket_bytes = point.bucket_bytes;
    plan.gather_loads = point.gather_loads;
    return plan;
  }

  // The candidate, or one with more chunks that fits if it does not.
  Candidate fitting(Candidate candidate) const {
    if (options_.chunks || fits_(candidate.plan)) return candidate;
    PlanOptions finer = options_;
    for (const std::int64_t count : chunk_counts(options_.workers)) {
      finer.chunks = {count};
      const Plan plan = make_plan(graph_, recipe_, finer);
      if (faults(plan, graph_, recipe_.batch).empty() && fits_(plan))
        return candidate_of(graph_, recipe_, plan, costs_);
    }
    return candidate;
  }

  void consider(const Point& point) {
    if (!seen_.insert(point).second) return;
    // Compared with plans of its kind alone: those of other kinds are left to trials.
    double& best_seconds = best_seconds_.try_emplace(point.kind(), 1e30).first->second;
    if (least_work * work_ / threads_of(point) > best_seconds) {
      ++compared_;
      return;
    }
    Plan plan = plan_of(point);
    if (!faults(plan, graph_, recipe_.batch).empty()) {
      // If no plan can follow the flags, this one is returned, and its check reports why.
      if (played_.empty()) broken_ = std::move(plan);
      return;
    }
    ++compared_;
    PricedStep step(graph_, recipe_, plan, costs_);
    const double known = step.measured_shares(point.workers).any_size;
    std::optional<bool> asked;
    const auto fits = [&] {
      if (!asked) asked = fits_(plan);
      too_large_ |= !*asked;
      return *asked;
    };
    if (known > best_known_ && fits()) best_known_ = known;
    if (known < mostly_measured * best_known_) return;
    const double least = step.least_seconds();
    if (least > prediction_error * best_seconds || !fits()) return;
    // Set before playing, so that the prediction holds for the plan that will run.
    step.set_steps_in_flight(options_.steps_in_flight.value_or(steps_in_flight(least)));
    const Candidate played = played_candidate(step, point.segments, known);
    const double seconds = played.predicted.count();
    if (threads_of(point) == 1) work_ = work_ > 0 ? std::min(work_, seconds) : seconds;
    best_seconds = std::min(best_seconds, seconds);
    played_.emplace(point, played);
  }

  Choice result() {
    if (played_.empty()) {
      if (broken_) require_valid(*broken_, graph_, recipe_.batch);
      // Which one is refused makes little difference: the search goes on as if all fitted.
      if (too_large_) return choose(graph_, recipe_, options_, costs_);
      throw Error("internal: no plan was found");
    }
    Choice choice;
    choice.compared = compared_;
    for (auto& [point, candidate] : played_) choice.candidates.push_back(std::move(candidate));
    std::ranges::sort(choice.candidates, {}, &Candidate::predicted);
    prefer_simplest(choice.candidates);
    return choice;
  }

  const Graph& graph_;
  const Recipe& recipe_;
  PlanOptions options_;
  const CostsFor& costs_;
  const PlanFits& fits_;
  std::int64_t granule_;  // samples that a cut leaves together
  std::set<Point> seen_;
  std::map<Point, Candidate> played_;
  std::optional<Plan> broken_;
  bool too_large_ = false;                   // a plan did not fit
  std::map<PlanKind, double> best_seconds_;  // of a step
  double best_known_ = 0;
  double work_ = 0;  // seconds of a step on one thread
  std::size_t compared_ = 0;
};

}  // namespace

PlanKind kind_of(const Granularity& granularity) {
  if (granularity.gpu_share > 0) return granularity.workers > 0 ? PlanKind::shared : PlanKind::gpu;
  if (granularity.team > 1) return PlanKind::teams;
  return granularity.workers > 1 ? PlanKind::workers : PlanKind::alone;
}

void prefer_simplest(std::vector<Candidate>& candidates) {
  constexpr double as_fast_as = 1.02;
  const auto slower = [&](const Candidate& each) {
    const Candidate& best = candidates.front();
    return each.was_tried() != best.was_tried() || each.is_doubtful() != best.is_doubtful() ||
           each.expected() > as_fast_as * best.expected();
  };
  const auto end = std::ranges::find_if(candidates, slower);
  const auto simplest = std::ranges::min_element(candidates.begin(), end, {}, [](const auto& each) {
    return std::pair(each.tasks, each.granularity.workers * each.granularity.team);
  });
  std::rotate(candidates.begin(), simplest, simplest + 1);
}

Choice choose(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
              const CostsFor& costs, const PlanFits& fits) {
  if (!computes(options, DeviceKind::cuda) || options.shares)
    return Search(graph, recipe, options, costs, fits).run();
  return choose_devices(graph, recipe, options, costs, fits);
}

Candidate candidate_of(const Graph& graph, const Recipe& recipe, const Plan& plan,
                       const CostsFor& costs) {
  const PricedStep step(graph, recipe, plan, costs);
  return played_candidate(step, std::to_string(plan.segments.size()),
                          step.measured_shares(groups_of(plan).front()->workers).any_size);
}

const DeviceGroup* gpu_of(const Plan& plan) {
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cuda) return group;
  return nullptr;
}

std::string explain(const Choice& choice, std::size_t rows) {
  std::string text =
      formatted("%-10s %6s %5s %8s %8s %6s %7s %10s %8s %8s %7s %12s %12s %9s %6s %9s\n",
                "segments", "chunks", "team", "workers", "on GPU", "lanes", "bucket", "reduction",
                "backward", "loads", "tasks", "predicted", "tried", "busy", "idle", "overhead");
  for (std::size_t i = 0; i < std::min(rows, choice.candidates.size()); ++i) {
    const Candidate& each = choice.candidates[i];
    const Granularity& cut = each.granularity;
    int lanes = 0;
    for (const DeviceGroup* group : groups_of(each.plan)) lanes += group->lanes;
    // "62 nchw": samples of each batch, and their layout.
    std::string on_gpu = "-";
    if (const DeviceGroup* gpu = gpu_of(each.plan))
      on_gpu = std::to_string(share_of(*gpu)) + " " + std::string(layout_name(gpu->layout));
    const std::string tried =
        each.was_tried() ? formatted("%.3f ms", 1e3 * each.tried.count()) : "";
    text += formatted(
        "%-10s %6zu %5d %8d %8s %6d %6.2fM %10s %8s %8s %7zu %9.3f ms %12s %8.1f%% %5.1f%% "
        "%8.1f%%\n",
        cut.segments.c_str(), cut.chunks, cut.team, cut.workers, on_gpu.c_str(), lanes,
        static_cast<double>(each.plan.bucket_bytes) / (1 << 20),
        reduction_name(each.plan.reduction).data(), backward_name(each.plan.backward).data(),
        each.plan.gather_loads || each.tasks == 1 ? "gathered" : "ahead", each.tasks,
        1e3 * each.predicted.count(), tried.c_str(), 100 * each.shares.busy, 100 * each.shares.idle,
        100 * each.shares.overhead);
  }
  return text + formatted("the first is taken; %zu plans were compared\n", choice.compared) +
         roles_of(choice);
}

}  // namespace regatta
