#include "tasks/play.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "base/error.h"
#include "tasks/dependencies.h"
#include "tasks/placement.h"
#include "tasks/policy.h"
#include "tasks/spread.h"

namespace regatta {
namespace {

// Chance is to even out: of a short list more steps are played.
constexpr std::size_t tasks_to_see = 240, most_steps = 24;

constexpr double never = std::numeric_limits<double>::infinity();

// Workers that may run the same tasks: those of a group. Loading and delivering belong to the CPU
// group, or to loaders, which are a pool of their own.
struct Pools {
  explicit Pools(const Plan& plan) {
    const auto groups = groups_of(plan);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const bool cpu = groups[g]->kind == DeviceKind::cpu;
      if (cpu) host = static_cast<int>(g);
      sizes.push_back(cpu ? groups[g]->workers : 1);
    }
    if (host >= 0) return;
    host = static_cast<int>(sizes.size());
    sizes.push_back(std::max(plan.loaders, 1));
  }
  int of(const Task& task) const {
    return task.on_host ? host : static_cast<int>(task.group.value);
  }

  std::vector<int> sizes;
  int host = -1;
};

// A task's seconds at any number of busy workers, by a line between one and all of them. Chunks of
// one size have one cost, so most tasks are looked up once for many.
class CostLines {
 public:
  CostLines(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs,
            const Pools& pools) {
    using Key = std::vector<std::int64_t>;
    std::map<Key, std::pair<double, double>> known;
    for (const Task& task : list.tasks) {
      Key key{pools.of(task)};
      for (const Action& action : task.actions) {
        key.push_back(static_cast<std::int64_t>(action.phase));
        key.push_back(action.segment.value);
        key.push_back(action.part);
        key.push_back(action.bucket.value);
        if (!of_chunk(action.phase)) continue;
        const Chunk& chunk = blueprint.chunks[action.chunk.value];
        key.push_back(chunk.capacity);
        // The first chunk of a slot writes gradients, the others add to them.
        key.push_back(blueprint.begins_slot(chunk) ? 1 : 0);
      }
      const auto [found, fresh] = known.try_emplace(std::move(key));
      const int all = pools.sizes[static_cast<std::size_t>(pools.of(task))];
      if (fresh) {
        const double alone = costs.of(task, 1).seconds;
        const double crowd = all > 1 ? costs.of(task, all).seconds : alone;
        found->second = {alone, all > 1 ? (crowd - alone) / (all - 1) : 0};
      }
      lines_.push_back(found->second);
    }
    const std::vector<double> company = company_of(blueprint, list);
    for (std::size_t t = 0; t < lines_.size(); ++t) lines_[t].second *= company[t];
  }

  double at(std::size_t task, int busy) const {
    const auto [alone, each] = lines_[task];
    return std::max(alone + each * (busy - 1), 1e-9);
  }

 private:
  std::vector<std::pair<double, double>> lines_;
};

class Game {
 public:
  Game(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs,
       const PlayOptions& options)
      : list_(list),
        crowded_(takes_all_cpus(blueprint.plan)),
        in_flight_(static_cast<std::size_t>(blueprint.plan.steps_in_flight)),
        pools_(blueprint.plan),
        lines_(blueprint, list, costs, pools_),
        runtime_(costs.runtime()),
        count_(list.tasks.size()),
        places_(fixed_places(blueprint, list), workers_of(blueprint.plan).size()),
        turns_(workers_of(blueprint.plan).size()),
        ready_(pools_.sizes.size()),
        busy_(pools_.sizes.size(), 0) {
    for (std::size_t p = 0; p < pools_.sizes.size(); ++p)
      for (int i = 0; i < pools_.sizes[p]; ++i) workers_.push_back({.pool = p});
    const std::vector<double> slowness = slowness_of(blueprint.plan);
    for (std::size_t w = 0; w < std::min(slowness.size(), workers_.size()); ++w)
      workers_[w].slowness = slowness[w];
    // Until the ring is full, submission runs ahead of its steady pace.
    steps_ = std::max(static_cast<std::size_t>(options.steps), in_flight_ + 2);
    for (std::uint32_t g = 0; g < pools_.sizes.size(); ++g) {
      spreads_.emplace_back();
      if (g >= groups_of(blueprint.plan).size()) continue;  // loaders
      spreads_.back() = Spread(blueprint, list, costs.spread(GroupId{g}), pools_.sizes[g]);
      if (!spreads_.back().none())
        steps_ = std::clamp(tasks_to_see / count_, steps_, std::max(steps_, most_steps));
    }
    submission_ = submitted_after(list, runtime_);
    submission_seconds_ = submission_.back();
    homes_.assign(blueprint.chunks.size(), -1);
    connect();
  }

  Played run() {
    finished_.assign(steps_, never);
    left_of_step_.assign(steps_, count_);
    begin_submission(0);
    while (finished_.back() == never) {
      submit_what_is_due();
      hand_out();
      advance(next_event());
    }
    return result();
  }

 private:
  struct Worker {
    std::size_t pool = 0;
    std::int64_t task = -1;  // counted over all steps; -1: none
    double delay = 0;        // of the runtime, before the task starts
    double left = 1;         // part of the task
    double start = 0;
    double stolen = 0;  // by the thread that submits, to be made good
    double free = 0;    // when it has released what waited for its last task
    double busy = 0, overhead = 0;
    bool just_finished = false;
    double slowness = 1;
    double luck = 1;  // with its task
    // Of one that submits: tasks that it has handed over, and what they are worth.
    std::size_t handed = 0;
    double worth = 0;
  };

  // Who waits for how many, from step to step. After the first few steps the pattern repeats with
  // the period of the rings.
  void connect() {
    Dependencies dependencies;
    const std::size_t known = std::min(steps_, in_flight_ + 2);
    waits_.assign(count_ * steps_, 0);
    ready_at_.assign(count_ * steps_, 0);
    successors_.resize(count_ * steps_);
    std::vector<std::vector<Dependencies::Edge>> by_step;
    for (std::size_t s = 0; s < steps_; ++s) {
      if (s < known) {
        by_step.push_back(dependencies.follow(list_, s, static_cast<std::int64_t>(s * count_)));
        for (const auto& [task, on] : by_step.back()) connect(task, on);
        if (s == 0) rank(by_step.front());
      } else {
        const std::size_t like = known - 1 - (s - (known - 1)) * (in_flight_ - 1) % in_flight_;
        const auto shift = static_cast<std::int64_t>((s - like) * count_);
        for (const auto& [task, on] : by_step[like]) connect(task + shift, on + shift);
      }
    }
  }
  void rank(const std::vector<Dependencies::Edge>& edges) {
    std::vector<double> seconds;
    for (std::size_t t = 0; t < count_; ++t)
      seconds.push_back(
          lines_.at(t, pools_.sizes[static_cast<std::size_t>(pools_.of(list_.tasks[t]))]));
    ranks_ = ranks(std::move(seconds), edges);
  }
  void connect(std::int64_t task, std::int64_t on) {
    successors_[static_cast<std::size_t>(on)].push_back(task);
    ++waits_[static_cast<std::size_t>(task)];
  }

  double buffers_of(std::int64_t id) const {
    return static_cast<double>(task_of(id).accesses.size());
  }
  const Task& task_of(std::int64_t id) const {
    return list_.tasks[static_cast<std::size_t>(id) % count_];
  }

  void begin_submission(std::size_t step) {
    submitting_ = step;
    submission_start_ = std::max(now_, submission_start_);
    if (!crowded_) return;
    // See Crew::rob.
    const bool room = std::ranges::any_of(workers_, [](const Worker& w) { return w.task < 0; });
    if (!room) workers_.front().stolen += submission_seconds_;
  }

  double submission_time(std::size_t task) const { return submission_start_ + submission_[task]; }

  // The next task to be submitted has number submitted_ of step submitting_.
  void submit_what_is_due() {
    while (submitting_ < finished_.size()) {
      if (submitted_ == count_) {
        const std::size_t next = submitting_ + 1;
        if (next >= finished_.size()) {
          submitting_ = next;
          return;
        }
        double free = submission_start_ + submission_seconds_ + runtime_.step;
        if (next >= in_flight_) {
          const double before = finished_[next - in_flight_];
          if (before == never) return;  // the ring is full
          free = std::max(free, before + runtime_.wake);
        }
        submission_start_ = free;
        submitted_ = 0;
        begin_submission(next);
      }
      if (submission_time(submitted_) > now_ + 1e-12) return;
      const auto id = static_cast<std::int64_t>(submitting_ * count_ + submitted_);
      ++submitted_;
      if (waits_[static_cast<std::size_t>(id)] == 0) make_ready(id);
    }
  }
  bool is_submitted(std::int64_t id) const {
    const std::size_t step = static_cast<std::size_t>(id) / count_;
    return step < submitting_ ||
           (step == submitting_ && static_cast<std::size_t>(id) % count_ < submitted_);
  }

  int* home_of(const Task& task) {
    for (const Action& action : task.actions)
      if (action.phase == Phase::load || action.phase == Phase::forward ||
          action.phase == Phase::backward)
        return &homes_[action.chunk.value];
    return nullptr;
  }

  void make_ready(std::int64_t id) {
    const Task& task = task_of(id);
    const std::size_t index = static_cast<std::size_t>(id) % count_;
    const auto step = static_cast<std::int64_t>(static_cast<std::size_t>(id) / count_);
    const int* home = home_of(task);
    ready_[static_cast<std::size_t>(pools_.of(task))].push_back(
        {step, ranks_[index], static_cast<std::int64_t>(index), home ? *home : -1,
         places_.at(index, step)});
  }

  void hand_out() {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      Worker& worker = workers_[w];
      std::vector<ReadyTask>& ready = ready_[worker.pool];
      const std::ptrdiff_t found =
          worker.task < 0 ? turns_.pick(ready, static_cast<int>(w)) : std::ptrdiff_t{-1};
      if (found >= 0) {
        const auto chosen = static_cast<std::size_t>(found);
        const ReadyTask taken = ready[chosen];
        turns_.taken(taken);
        ready[chosen] = ready.back();
        ready.pop_back();
        worker.task = taken.list * static_cast<std::int64_t>(count_) + taken.order;
        const auto id = static_cast<std::size_t>(worker.task);
        worker.delay = runtime_.task + runtime_.access * buffers_of(worker.task);
        worker.delay += worker.just_finished ? std::max(worker.free - now_, 0.0)
                                             : runtime_.wake + std::max(ready_at_[id] - now_, 0.0);
        worker.delay += std::exchange(worker.stolen, 0);
        worker.left = 1;
        worker.handed = 0;
        worker.worth = 0;
        worker.luck = spreads_[worker.pool].factor(
            taken.list, static_cast<std::size_t>(taken.order), static_cast<int>(w));
        worker.start = now_ + worker.delay;
        if (int* home = home_of(task_of(worker.task))) *home = static_cast<int>(w);
        ++busy_[worker.pool];
      }
      worker.just_finished = false;
    }
  }

  double seconds_of(const Worker& worker, const std::vector<int>& busy) const {
    return worker.slowness * worker.luck *
           lines_.at(static_cast<std::size_t>(worker.task) % count_, busy[worker.pool]);
  }
  double seconds_left(const Worker& worker) const {
    return worker.delay + worker.left * seconds_of(worker, busy_);
  }

  // Of what a worker that submits hands over, one task after the other; the next of its kind comes
  // last, with its end.
  std::int64_t next_handed(const Worker& worker) const {
    const auto& waiting = successors_[static_cast<std::size_t>(worker.task)];
    const bool through =
        worker.handed == waiting.size() || submits(task_of(waiting[worker.handed]));
    return through ? -1 : waiting[worker.handed];
  }
  // The part of its task that is left until then.
  double left_before(const Worker& worker, std::int64_t next) const {
    const double whole = task_of(worker.task).actions.front().part;
    return worker.left - 1 + (worker.worth + worth_to_submit(task_of(next))) / whole;
  }
  double seconds_to_next(const Worker& worker) const {
    const std::int64_t next = next_handed(worker);
    if (next < 0) return never;
    return worker.delay + std::max(left_before(worker, next), 0.0) * seconds_of(worker, busy_);
  }
  void hand_over(Worker& worker, double all) {
    for (std::int64_t next = 0; (next = next_handed(worker)) >= 0; ++worker.handed) {
      if (left_before(worker, next) * all > 1e-12) return;
      worker.worth += worth_to_submit(task_of(next));
      ready_at_[static_cast<std::size_t>(next)] = now_;
      if (--waits_[static_cast<std::size_t>(next)] == 0) make_ready(next);
    }
  }

  double next_event() const {
    double soonest = never;
    bool anyone_idle = false;
    for (const Worker& worker : workers_) {
      if (worker.task < 0)
        anyone_idle = true;
      else
        soonest = std::min(soonest, seconds_left(worker));
    }
    for (const Worker& worker : workers_)
      if (anyone_idle && worker.task >= 0 && submits(task_of(worker.task)))
        soonest = std::min(soonest, seconds_to_next(worker));
    // Submissions matter to those who wait only.
    if (anyone_idle && submitting_ < finished_.size()) {
      if (submitted_ < count_)
        soonest = std::min(soonest, std::max(submission_time(submitted_) - now_, 0.0));
      else if (submitting_ + 1 < finished_.size() &&
               (submitting_ + 1 < in_flight_ || finished_[submitting_ + 1 - in_flight_] != never))
        soonest = std::min(soonest, 1e-12);
    }
    return soonest;
  }

  // The first third of the steps fills the pipeline.
  std::size_t last_uncounted() const {
    return steps_ - 1 - std::max(std::size_t{2}, steps_ * 2 / 3);
  }

  void advance(double seconds) {
    if (seconds == never) throw Error("internal: the play of a task list stands still");
    const bool counted = finished_[last_uncounted()] != never;
    now_ += seconds;
    const std::vector<int> busy = busy_;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      Worker& worker = workers_[w];
      if (worker.task < 0) continue;
      const double waited = std::min(worker.delay, seconds);
      const double worked = seconds - waited;
      if (counted) {
        const bool submitting = submits(task_of(worker.task));
        worker.overhead += waited + (submitting ? worked : 0);
        worker.busy += submitting ? 0 : worked;
      }
      worker.delay -= waited;
      const double all = seconds_of(worker, busy);
      worker.left -= worked / all;
      if (submits(task_of(worker.task))) hand_over(worker, all);
      if (worker.delay <= 1e-12 && worker.left * all <= 1e-12) finish(w);
    }
  }

  void finish(std::size_t w) {
    Worker& worker = workers_[w];
    const std::int64_t id = std::exchange(worker.task, -1);
    const std::size_t step = static_cast<std::size_t>(id) / count_;
    --busy_[worker.pool];
    worker.just_finished = true;
    if (step + 1 == finished_.size()) {
      played_.resize(count_);
      played_[static_cast<std::size_t>(id) % count_] = {static_cast<int>(w), worker.start, now_};
    }
    worker.free = now_;
    double last = 0;
    for (const std::int64_t next : std::span(successors_[static_cast<std::size_t>(id)])
                                       .subspan(std::exchange(worker.handed, 0))) {
      if (--waits_[static_cast<std::size_t>(next)] > 0 || !is_submitted(next)) continue;
      ready_at_[static_cast<std::size_t>(next)] = worker.free;
      last = release_seconds(task_of(id), task_of(next), runtime_);
      worker.free += last;
      make_ready(next);
    }
    worker.free -= last;
    if (--left_of_step_[step] == 0) finished_[step] = now_;
  }

  Played result() const {
    Played made;
    const double wall = finished_.back() - finished_[last_uncounted()];
    made.step_seconds = wall / static_cast<double>(steps_ - 1 - last_uncounted());
    for (const Worker& worker : workers_) {
      PlayedShares shares{worker.busy / wall, worker.overhead / wall, 0};
      shares.idle = std::max(0.0, 1 - shares.busy - shares.overhead);
      made.workers.push_back(shares);
      const auto all = static_cast<double>(workers_.size());
      made.total.busy += shares.busy / all;
      made.total.overhead += shares.overhead / all;
      made.total.idle += shares.idle / all;
    }
    made.tasks = played_;
    return made;
  }

  const TaskList& list_;
  bool crowded_;  // the thread that submits has no CPU of its own: what it does, a worker does not
  std::size_t steps_ = 4, in_flight_;
  Pools pools_;
  CostLines lines_;
  RuntimeCosts runtime_;
  std::size_t count_;  // tasks of a step
  std::vector<double> ranks_;
  std::vector<int> waits_;                             // by task of all steps
  std::vector<double> ready_at_;                       // likewise; it may be taken, and begun then
  std::vector<std::vector<std::int64_t>> successors_;  // likewise
  std::vector<double> submission_;  // by task: seconds from the begin of submitting to its own
  double submission_seconds_ = 0;   // of a step
  std::size_t submitting_ = 0, submitted_ = 0;
  double submission_start_ = 0;
  StepPlaces places_;
  Turns turns_;
  std::vector<std::vector<ReadyTask>> ready_;  // by pool
  std::vector<int> busy_;                      // by pool: workers that have a task
  std::vector<Worker> workers_;
  std::vector<Spread> spreads_;  // by pool
  std::vector<int> homes_;       // by chunk
  std::vector<double> finished_;
  std::vector<std::size_t> left_of_step_;
  std::vector<PlayedTask> played_;
  double now_ = 0;
};

}  // namespace

Played play(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs,
            const PlayOptions& options) {
  return Game(blueprint, list, costs, options).run();
}

double least_seconds(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs) {
  const Pools pools(blueprint.plan);
  const CostLines lines(blueprint, list, costs, pools);
  std::vector<double> work(pools.sizes.size(), 0);
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    work[static_cast<std::size_t>(pools.of(list.tasks[t]))] +=
        lines.at(t, 1) + costs.runtime().task +
        costs.runtime().access * static_cast<double>(list.tasks[t].accesses.size());
  double least = 0;
  for (std::size_t p = 0; p < work.size(); ++p) least = std::max(least, work[p] / pools.sizes[p]);
  return least;
}

}  // namespace regatta
