#include "trace/analysis.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "trace/task_index.h"

namespace regatta::trace {
namespace {

// A task is late when it took this much longer than predicted.
constexpr double overrun = 1.1;

enum class Role { compute, load, meeting, reduction, exchange };

Role role_of(const TaskKind& kind) {
  const std::string phase = main_phase(kind);
  if (phase == "load") return Role::load;
  if (phase.starts_with("exchange") || phase == "running_sum") return Role::exchange;
  if (phase == "combine" || phase == "combine_gradient") return Role::meeting;
  if (phase == "reduce" || phase == "measure" || phase == "clip" || phase == "update" ||
      phase == "pack")
    return Role::reduction;
  return Role::compute;
}

// Whether the task that a reason names held the worker up. Otherwise it is the one that was
// waiting.
bool in_the_way(Cause cause) {
  return cause != Cause::transfer && cause != Cause::submission && cause != Cause::scheduling;
}

// A stretch of time with a reason, before it is known which worker slept then.
struct Reason {
  Time start = 0, end = 0;
  Cause cause = Cause::outside;
  std::int64_t task = -1;  // position
};

class Explainer {
 public:
  Explainer(const Record& record, const Window& window)
      : record_(record), window_(window), index_(record) {
    for (const TaskKind& kind : record.kinds) roles_.push_back(role_of(kind));
    for (const Task& task : record.tasks)
      if (role(task) == Role::compute) took_part_.insert(key(task.worker, task.step));
    for (const Link& link : record.links) transfers_ = transfers_ || link.bytes > 0;
    find_last();
    find_queued();
    find_arrivals();
  }

  Analysis run() {
    found_.window = window_;
    found_.workers.resize(record_.workers.size());
    found_.kinds.resize(record_.kinds.size());
    for (std::size_t k = 0; k < found_.kinds.size(); ++k)
      found_.kinds[k].kind = static_cast<std::int32_t>(k);
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(record_.workers.size()); ++w) follow(w);
    count_tasks();
    find_critical_path();
    summarise();
    return std::move(found_);
  }

 private:
  // --- facts

  const Task& task(std::int64_t position) const {
    return record_.tasks[static_cast<std::size_t>(position)];
  }
  Role role(const Task& each) const { return roles_[static_cast<std::size_t>(each.kind)]; }
  static std::uint64_t key(std::int32_t worker, std::int64_t step) {
    return (static_cast<std::uint64_t>(step) << 16) ^ static_cast<std::uint64_t>(worker);
  }
  Time clipped(const Task& each) const {
    return std::max<Time>(0, std::min(each.end, window_.end) - std::max(each.start, window_.start));
  }
  // An exchange that waits for a node could have been shorter.
  Time unavoidable(std::int64_t position) const {
    Task each = task(position);
    if (role(each) == Role::exchange)
      each.start = std::clamp(task(last_to_come(position)).start, each.start, each.end);
    return clipped(each);
  }
  bool overran(const Task& each) const {
    return each.predicted != unknown &&
           static_cast<double>(each.duration()) > overrun * static_cast<double>(each.predicted);
  }

  // The task in the window that ended last: workers without more work wait for it.
  void find_last() {
    for (std::size_t i = 0; i < record_.tasks.size(); ++i) {
      const Task& each = record_.tasks[i];
      if (each.start >= window_.end || each.end <= window_.start) continue;
      if (last_ < 0 || each.end > task(last_).end) last_ = static_cast<std::int64_t>(i);
    }
  }

  // For each kind of worker: when some ready task sat in a queue while its worker ran another.
  void find_queued() {
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> classes;
    for (const Worker& worker : record_.workers)
      class_of_.push_back(
          classes.try_emplace({worker.node, worker.group, worker.kind}, classes.size())
              .first->second);
    queued_.resize(classes.size());
    for (std::size_t w = 0; w < record_.workers.size(); ++w) {
      const std::vector<std::int64_t>& line = index_.of_worker(w);
      for (std::size_t i = 1; i < line.size(); ++i) {
        const Task& each = task(line[i]);
        const Time free = task(line[i - 1]).end;
        if (each.ready != unknown && each.ready < std::min(free, each.start))
          queued_[class_of_[w]].push_back(
              {each.ready, std::min(free, each.start), Cause::queued, line[i]});
      }
    }
    for (std::vector<Reason>& each : queued_) {
      std::ranges::sort(each, {}, &Reason::start);
      // Disjoint: where several wait, the one that came first stands for them.
      std::size_t kept = 0;
      Time covered = std::numeric_limits<Time>::min();
      for (Reason reason : each) {
        reason.start = std::max(reason.start, covered);
        if (reason.start >= reason.end) continue;
        covered = reason.end;
        each[kept++] = reason;
      }
      each.resize(kept);
    }
  }

  // Nodes take part in the same exchanges in the same order. For each task that is one, the node's
  // that came to it last.
  void find_arrivals() {
    using Exchange = std::tuple<std::int64_t, std::string, std::string, int>;
    std::map<Exchange, std::int64_t> latest;
    std::vector<std::pair<std::int64_t, Exchange>> all;
    std::map<std::pair<std::string, Exchange>, int> seen;  // by node
    for (std::size_t i = 0; i < record_.tasks.size(); ++i) {
      const Task& each = record_.tasks[i];
      if (role(each) != Role::exchange) continue;
      const TaskKind& kind = record_.kind_of(each);
      Exchange exchange{each.step, kind.job, label(kind), 0};
      const std::string& node = record_.workers[static_cast<std::size_t>(each.worker)].node;
      // Micro-batches of a step have exchanges of the same name.
      std::get<3>(exchange) = seen[{node, exchange}]++;
      const auto position = static_cast<std::int64_t>(i);
      const auto [found, fresh] = latest.try_emplace(exchange, position);
      if (!fresh && each.start > task(found->second).start) found->second = position;
      all.emplace_back(position, std::move(exchange));
    }
    for (const auto& [position, exchange] : all) last_to_come_[position] = latest.at(exchange);
  }
  std::int64_t last_to_come(std::int64_t exchange) const {
    const auto found = last_to_come_.find(exchange);
    return found == last_to_come_.end() ? exchange : found->second;
  }

  // --- one worker, from gap to gap

  void follow(std::int32_t worker) {
    WorkerUse& use = found_.workers[static_cast<std::size_t>(worker)];
    const bool computes = trace::computes(record_.workers[static_cast<std::size_t>(worker)]);
    Time cursor = window_.start;
    for (const std::int64_t position : index_.of_worker(static_cast<std::size_t>(worker))) {
      const Task& each = task(position);
      if (each.end <= window_.start) continue;
      if (each.start > cursor && computes)
        gap(worker, cursor, std::min(each.start, window_.end), position);
      cursor = std::max(cursor, each.start);
      if (cursor >= window_.end) return;
      const Time end = std::min(each.end, window_.end);
      if (end <= cursor) continue;
      use.busy += end - cursor;
      cursor = end;
    }
    if (cursor < window_.end && computes) gap(worker, cursor, window_.end, -1);
  }

  // Nothing ran in [start, end); `next` runs then, or never.
  void gap(std::int32_t worker, Time start, Time end, std::int64_t next) {
    if (start >= end) return;
    Time idle_end = end;
    if (next >= 0 && task(next).ready != unknown) {
      // From when it was ready until it ran, the runtime was at work: scheduling, then data.
      const Task& each = task(next);
      idle_end = std::clamp(each.ready, start, end);
      const Time fetch = std::clamp(each.start - each.acquire, idle_end, end);
      WorkerUse& use = found_.workers[static_cast<std::size_t>(worker)];
      use.overhead += fetch - idle_end;
      if (transfers_) {
        explain(worker, start, idle_end, next);
        sleep(worker, {fetch, end, Cause::transfer, next});
        return;
      }
      use.overhead += end - fetch;
    }
    explain(worker, start, idle_end, next);
  }

  // Idle in [start, end): reasons along the chain of tasks that led to `next`, unless a ready task
  // was stuck elsewhere meanwhile.
  void explain(std::int32_t worker, Time start, Time end, std::int64_t next) {
    if (start >= end) return;
    chain_.clear();
    walk_back(worker, start, end, next);
    const std::vector<Reason>& stuck = queued_[class_of_[static_cast<std::size_t>(worker)]];
    auto piece = std::ranges::upper_bound(stuck, start, {}, &Reason::end);
    for (auto reason = chain_.rbegin(); reason != chain_.rend(); ++reason) {
      Time cursor = reason->start;
      while (piece != stuck.end() && piece->start < reason->end) {
        const Time from = std::max(cursor, piece->start);
        const Time to = std::min(reason->end, piece->end);
        if (from > cursor) sleep(worker, {cursor, from, reason->cause, reason->task});
        blame_queue(worker, from, to, piece->task);
        cursor = to;
        if (piece->end > reason->end) break;
        ++piece;
      }
      if (cursor < reason->end) sleep(worker, {cursor, reason->end, reason->cause, reason->task});
    }
  }

  // What kept `waiting` in its worker's queue in [start, end): the tasks that ran there.
  void blame_queue(std::int32_t worker, Time start, Time end, std::int64_t waiting) {
    const Task& stuck = task(waiting);
    const auto& line = index_.of_worker(static_cast<std::size_t>(stuck.worker));
    // The one that ran there at `start`: the last to have started before.
    const auto waits = line.begin() + static_cast<std::ptrdiff_t>(index_.place(waiting));
    const auto after = std::ranges::upper_bound(
        line.begin(), waits, start, {}, [&](std::int64_t each) { return task(each).start; });
    auto place = static_cast<std::size_t>(after - line.begin());
    if (place > 0) --place;
    Time cursor = start;
    for (; cursor < end && line[place] != waiting; ++place) {
      const Time until =
          line[place + 1] == waiting ? end : std::clamp(task(line[place + 1]).start, cursor, end);
      sleep(worker, {cursor, until, Cause::queued, line[place]});
      cursor = until;
    }
    sleep(worker, {cursor, end, Cause::scheduling, waiting});
  }

  // Reasons for [start, end), latest first, into chain_.
  void walk_back(std::int32_t worker, Time start, Time end, std::int64_t next) {
    Time time = end;
    // [from, time) has this reason; false: nothing is left to explain.
    const auto say = [&](Time from, Cause cause, std::int64_t blamed) {
      from = std::max(from, start);
      if (from < time) chain_.push_back({from, time, cause, blamed});
      time = std::min(from, time);
      return time > start;
    };
    std::int64_t waiting = next;
    std::int64_t step = 0;
    if (next >= 0) {
      step = task(next).step;
    } else if (last_ < 0) {
      say(start, Cause::outside, -1);
    } else {
      step = task(last_).step + 1;
      say(task(last_).end, Cause::outside, -1);
      say_running(worker, step, last_, -1, say);
      before_start(last_, say);
      waiting = last_;
    }
    while (time > start) {
      const Task& each = task(waiting);
      const std::int64_t on = index_.last_dependency(waiting);
      const Time free = on < 0 ? start : task(on).end;
      if (each.submit > free) {
        say(each.submit, Cause::scheduling, waiting);
        say(free, Cause::submission, waiting);
      }
      say(free, on < 0 && each.submit == unknown ? Cause::outside : Cause::scheduling, waiting);
      if (on < 0) return;
      say_running(worker, step, on, waiting, say);
      before_start(on, say);
      waiting = on;
    }
  }

  // While `running` ran, which `waiting` waits for.
  template <class Say>
  void say_running(std::int32_t worker, std::int64_t step, std::int64_t running,
                   std::int64_t waiting, const Say& say) const {
    const Time start = task(running).start;
    if (role(task(running)) == Role::exchange) {
      const std::int64_t late = last_to_come(running);
      say(std::max(start, task(late).start), Cause::exchange, running);
      say(start, Cause::straggler, late);
      return;
    }
    const Cause cause = cause_of(worker, step, running, waiting);
    say(start, cause, in_the_way(cause) || waiting < 0 ? running : waiting);
  }

  // A task that was ready and had not started: its worker was busy, or the runtime was.
  template <class Say>
  void before_start(std::int64_t position, const Say& say) const {
    const Task& each = task(position);
    if (each.ready == unknown) return;
    const auto& line = index_.of_worker(static_cast<std::size_t>(each.worker));
    for (std::size_t place = index_.place(position); place > 0; --place) {
      const Task& before = task(line[place - 1]);
      if (before.end <= each.ready) break;
      if (!say(before.end, Cause::scheduling, position)) return;
      if (!say(std::max(before.start, each.ready), Cause::queued, line[place - 1])) return;
    }
    say(each.ready, Cause::scheduling, position);
  }

  // Why a worker whose next task is of step `step` sleeps while `running` runs, which `waiting`
  // waits for.
  Cause cause_of(std::int32_t worker, std::int64_t step, std::int64_t running,
                 std::int64_t waiting) const {
    const Task& now = task(running);
    switch (role(now)) {
      case Role::load:
        return Cause::loader;
      case Role::meeting:
        return Cause::meeting;
      case Role::reduction:
        return Cause::reduction;
      case Role::exchange:
        return Cause::exchange;
      case Role::compute:
        break;
    }
    if (waiting >= 0 && role(task(waiting)) == Role::meeting) return Cause::meeting;
    if (now.step != step)
      return took_part_.contains(key(worker, now.step)) ? Cause::tail : Cause::too_few_tasks;
    if (waiting >= 0 && role(task(waiting)) == Role::reduction) return Cause::reduction;
    return Cause::dependency;
  }

  void sleep(std::int32_t worker, const Reason& reason) {
    if (reason.start >= reason.end) return;
    WorkerUse& use = found_.workers[static_cast<std::size_t>(worker)];
    const Time length = reason.end - reason.start;
    const std::int64_t id = reason.task < 0 ? -1 : task(reason.task).id;
    use.idle += length;
    use.causes[static_cast<std::size_t>(reason.cause)] += length;
    found_.causes[static_cast<std::size_t>(reason.cause)] += length;
    if (reason.task >= 0 && in_the_way(reason.cause)) kind_use(task(reason.task)).blamed += length;
    if (!found_.idle.empty()) {
      IdleInterval& before = found_.idle.back();
      if (before.worker == worker && before.end == reason.start && before.cause == reason.cause &&
          before.task == id) {
        before.end = reason.end;
        return;
      }
    }
    found_.idle.push_back({worker, reason.start, reason.end, reason.cause, id,
                           reason.task >= 0 && overran(task(reason.task))});
  }

  // --- everything together

  KindUse& kind_use(const Task& each) { return found_.kinds[static_cast<std::size_t>(each.kind)]; }

  void count_tasks() {
    for (const Task& each : record_.tasks) {
      if (each.start >= window_.end || each.end <= window_.start) continue;
      ++found_.tasks;
      ++found_.workers[static_cast<std::size_t>(each.worker)].tasks;
      ++kind_use(each).tasks;
      if (role(each) != Role::exchange) kind_use(each).busy += clipped(each);
    }
    for (const Mark& mark : record_.marks)
      found_.steps += mark.name == "step" && mark.time > window_.start && mark.time <= window_.end;
  }

  // The longest chain of dependent tasks. Ids rise from a task to those that depend on it.
  void find_critical_path() {
    std::vector<Time> length(record_.tasks.size());
    std::vector<std::int64_t> before(record_.tasks.size(), -1);
    std::int64_t longest = -1;
    for (std::size_t i = 0; i < record_.tasks.size(); ++i) {
      const Task& each = record_.tasks[i];
      if (each.start >= window_.end || each.end <= window_.start) continue;
      for (const std::int64_t on : index_.dependencies(static_cast<std::int64_t>(i))) {
        // Clocks of a GPU and its host may disagree; a chain that overlaps itself is none.
        if (task(on).end > each.start) continue;
        if (const Time so_far = length[static_cast<std::size_t>(on)]; so_far > length[i]) {
          length[i] = so_far;
          before[i] = on;
        }
      }
      length[i] += unavoidable(static_cast<std::int64_t>(i));
      if (longest < 0 || length[i] > length[static_cast<std::size_t>(longest)])
        longest = static_cast<std::int64_t>(i);
    }
    if (longest < 0) return;
    found_.critical = length[static_cast<std::size_t>(longest)];
    for (std::int64_t at = longest; at >= 0; at = before[static_cast<std::size_t>(at)]) {
      found_.critical_path.push_back(task(at).id);
      kind_use(task(at)).critical += unavoidable(at);
    }
    std::ranges::reverse(found_.critical_path);
  }

  void summarise() {
    const auto workers = static_cast<Time>(worker_count(record_));
    Time busiest = 0;
    for (std::size_t w = 0; w < found_.workers.size(); ++w) {
      if (!computes(record_.workers[w])) continue;
      const WorkerUse& use = found_.workers[w];
      found_.work += use.busy;
      busiest = std::max(busiest, use.busy);
    }
    if (workers > 0) {
      found_.bound = std::max(found_.critical, (found_.work + workers - 1) / workers);
      if (found_.work > 0)
        found_.imbalance = static_cast<double>(busiest) * static_cast<double>(workers) /
                               static_cast<double>(found_.work) -
                           1;
    }
    for (KindUse& use : found_.kinds)
      if (workers > 0) use.gain_s = seconds(use.busy + use.blamed) / static_cast<double>(workers);
    std::erase_if(found_.kinds,
                  [](const KindUse& use) { return use.tasks == 0 && use.blamed == 0; });
    std::ranges::stable_sort(found_.kinds, std::greater{}, &KindUse::gain_s);
  }

  const Record& record_;
  Window window_;
  TaskIndex index_;
  std::vector<Role> roles_;                            // by kind
  std::unordered_set<std::uint64_t> took_part_;        // worker and step
  std::vector<std::size_t> class_of_;                  // by worker
  std::vector<std::vector<Reason>> queued_;            // by class
  std::map<std::int64_t, std::int64_t> last_to_come_;  // by position of an exchange
  bool transfers_ = false;
  std::int64_t last_ = -1;
  std::vector<Reason> chain_;
  Analysis found_;
};

constexpr std::array<std::string_view, cause_count> names{
    "dependency", "meeting",    "reduction",  "tail",     "loader",    "queued", "too few tasks",
    "transfer",   "submission", "scheduling", "exchange", "straggler", "outside"};

constexpr std::array<std::string_view, cause_count> texts{
    "waited for another task of the step",
    "waited where chunks meet (batch norm)",
    "waited for gradients to be summed and parameters to be updated",
    "had nothing left to do in the step while others finished it",
    "waited for samples to be loaded",
    "waited while ready tasks sat in another worker's queue",
    "the step had too few tasks for so many workers",
    "waited for data to be copied between memories",
    "waited for tasks to be submitted",
    "waited for the runtime to start a ready task elsewhere",
    "waited for a message between nodes",
    "waited for the node that came last to an exchange",
    "outside of what was recorded"};

std::optional<std::int64_t> number_in(const Record& record, const char* key) {
  const auto found = record.metadata.find(key);
  if (found == record.metadata.end()) return std::nullopt;
  std::int64_t value = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, code] = std::from_chars(found->second.data(), end, value);
  if (code != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<double> taken_in(const Record& record, const Window& window) {
  double sum = 0, steps = 0;
  for (const Counter& counter : record.counters) {
    const bool inside = window.last_step == 0 ||
                        (counter.step >= window.first_step && counter.step <= window.last_step);
    if (counter.name != taken_counter || !inside) continue;
    sum += counter.value;
    ++steps;
  }
  if (steps == 0) return std::nullopt;
  return sum / steps;
}

}  // namespace

std::string_view cause_name(Cause cause) { return names[static_cast<std::size_t>(cause)]; }
std::string_view cause_text(Cause cause) { return texts[static_cast<std::size_t>(cause)]; }

double Analysis::efficiency() const {
  return wall() > 0 ? static_cast<double>(bound) / static_cast<double>(wall()) : 0;
}

Window window_of_steps(const Record& record, std::int64_t first, std::int64_t last) {
  Window window{.first_step = first, .last_step = last};
  bool any = false;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const Task& task : record.tasks) {
    if (task.step < 1) continue;
    least = std::min(least, task.step);
    most = std::max(most, task.step);
    if (task.step < first || task.step > last) continue;
    window.start = any ? std::min(window.start, task.start) : task.start;
    window.end = any ? std::max(window.end, task.end) : task.end;
    any = true;
  }
  if (!any)
    throw InputError("steps " + std::to_string(first) + ":" + std::to_string(last) +
                     " are not in the record" +
                     (most > 0 ? ", which has " + std::to_string(least) + ":" + std::to_string(most)
                               : ": it has no steps"));
  for (const Mark& mark : record.marks) {
    if (mark.name != "step") continue;
    if (mark.number == first - 1) window.start = mark.time;
    if (mark.number == last) window.end = mark.time;
  }
  window.end = std::max(window.start, window.end);
  return window;
}

Window whole_window(const Record& record) {
  const auto first = number_in(record, first_step_key), last = number_in(record, last_step_key);
  if (first && last) return window_of_steps(record, *first, *last);
  Window window;
  for (std::size_t i = 0; i < record.tasks.size(); ++i) {
    const Task& task = record.tasks[i];
    window.start = i == 0 ? task.start : std::min(window.start, task.start);
    window.end = std::max(window.end, task.end);
  }
  return window;
}

Analysis analyse(const Record& record, const Window& window) {
  Analysis found = Explainer(record, window).run();
  found.taken_by_others = taken_in(record, window);
  return found;
}

void fill_ready(Record& record) {
  const TaskIndex index(record);
  for (std::size_t i = 0; i < record.tasks.size(); ++i) {
    Task& task = record.tasks[i];
    if (task.ready != unknown) continue;
    const std::int64_t on = index.last_dependency(static_cast<std::int64_t>(i));
    const Time after = on < 0 ? unknown : record.tasks[static_cast<std::size_t>(on)].end;
    task.ready = std::max(after, task.submit);
    if (task.ready != unknown) task.ready = std::min(task.ready, task.start);
  }
}

}  // namespace regatta::trace
