#include "tasks/node_engine.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

namespace regatta {
namespace {

constexpr double nothing = 1e-9;  // seconds that count as none

}  // namespace

NodeEngine::NodeEngine(Clock& clock, const NodeWork& work, const RankHosts& hosts, Options options,
                       Callbacks callbacks)
    : clock_(clock),
      work_(work),
      hosts_(hosts),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      turns_(workers_of(work.blueprint().plan).size()),
      ready_(work.pools().size()),
      busy_(work.pools().size(), 0),
      paced_by_(work.pools().size(), 0),
      homes_(work.blueprint().chunks.size(), -1) {
  const auto steps = static_cast<std::size_t>(options_.steps);
  events_.resize(count() * steps);
  offers_.assign(count() * steps, 0);
  for (std::int64_t step = 0; step < options_.steps; ++step) {
    const std::vector<std::uint32_t>& waits = work.waits(step);
    waits_.insert(waits_.end(), waits.begin(), waits.end());
  }
  left_of_step_.assign(steps, count());
  submitted_.assign(steps, false);
  finished_.assign(steps, -1);
  for (std::size_t p = 0; p < work.pools().size(); ++p) {
    spreads_.push_back(work.spread(p, options_.seed));
    for (int i = 0; i < work.pools()[p].workers; ++i) workers_.push_back({.pool = p});
  }
  const std::vector<WorkerPower> powers = powers_of(work.blueprint().plan);
  for (std::size_t w = 0; w < std::min(powers.size(), workers_.size()); ++w)
    workers_[w].power = powers[w];
  joules_.assign(work.pools().size(), 0);
  if (!work.several_memories()) return;
  for (std::uint32_t b = 0; b < work.list().buffers.size(); ++b) {
    first_copy_.push_back(copies_.size());
    const int home = work.home_memory(b);
    copies_.resize(copies_.size() + static_cast<std::size_t>(work.list().buffers[b].copies),
                   BufferCopy{home < 0 ? 0 : std::uint64_t{1} << home});
  }
}

void NodeEngine::begin() {
  const std::int64_t first = std::min<std::int64_t>(work_.steps_in_flight(), options_.steps);
  for (std::int64_t step = 0; step < first; ++step) submit(step, clock_.now());
  next_step_ = first;
}

// --- submission ----------------------------------------------------------------------------------

void NodeEngine::submit(std::int64_t step, double when) {
  when = std::max(when, submitting_until_) + work_.runtime().step;
  submitting_until_ = when + work_.submission_seconds();
  if (options_.crowded) charge_submission(work_.submission_seconds());
  submitted_[static_cast<std::size_t>(step)] = true;
  releasing_several_ = true;
  for (std::size_t t = 0; t < count(); ++t) {
    const std::int64_t id = number(step, t);
    at(id).submit = when + work_.submitted_after(t);
    if (waits_[static_cast<std::size_t>(id)] == 0) released(id);
  }
  releasing_several_ = false;
  assign_tasks();
}

// The thread that submits wakes on a CPU whose worker has nothing to do, if there is one; if work
// comes for that worker meanwhile, the kernel lets them take turns of milliseconds, which is longer
// than submitting takes. Otherwise a worker waits for it.
void NodeEngine::charge_submission(double seconds) {
  const bool idle_worker =
      std::ranges::any_of(workers_, [](const Worker& worker) { return worker.task < 0; });
  if (!idle_worker) workers_.front().submission_debt += seconds;
}

// Nothing that it waits for is left; perhaps it is still to be submitted. `late`: others that
// waited for the same are released before it.
void NodeEngine::released(std::int64_t id, double late) {
  const double wait = at(id).submit - clock_.now();
  if (wait > nothing)
    clock_.later(wait, [this, id] { become_ready(id); });
  else
    become_ready(id, late);
}

// --- data ----------------------------------------------------------------------------------------

void NodeEngine::become_ready(std::int64_t id, double late) {
  at(id).ready = clock_.now() + late;
  const std::vector<ExchangeId>& exchanges = work_.exchanged(task_of(id));
  if (exchanges.empty()) return fetch(id);
  offers_[static_cast<std::size_t>(id)] = static_cast<std::uint32_t>(exchanges.size());
  for (const ExchangeId exchange : exchanges) callbacks_.offer(step_of(id), exchange);
}

void NodeEngine::exchanged(std::int64_t step, ExchangeId exchange) {
  const std::int64_t id = number(step, work_.awaits(exchange));
  if (--offers_[static_cast<std::size_t>(id)] == 0) fetch(id);
}

NodeEngine::BufferCopy& NodeEngine::copy_of(std::uint32_t buffer, std::int64_t step) {
  const auto copies = static_cast<std::size_t>(work_.list().buffers[buffer].copies);
  return copies_[first_copy_[buffer] + static_cast<std::size_t>(step) % copies];
}

// Data that the task reads and that is not in its memory crosses the bus as soon as the task is
// ready: StarPU fetches data for the next task while one runs.
void NodeEngine::fetch(std::int64_t id) {
  if (!work_.several_memories()) return queue(id);
  const Task& task = work_.list().tasks[task_of(id)];
  const int here = work_.pools()[static_cast<std::size_t>(work_.pool_of(task_of(id)))].memory;
  const std::uint64_t mine = std::uint64_t{1} << here;
  std::map<int, double> bytes;  // by memory they come from
  for (const Access& access : task.accesses) {
    BufferCopy& copy = copy_of(access.buffer, step_of(id));
    if (access.mode == Mode::write || copy.valid_in == 0 || (copy.valid_in & mine) != 0) continue;
    const int from = std::countr_zero(copy.valid_in);
    bytes[from] += static_cast<double>(bytes_of(work_.list(), access));
    copy.valid_in |= mine;
  }
  if (bytes.empty()) return queue(id);
  const auto left = std::make_shared<std::size_t>(bytes.size());
  for (const auto& [from, amount] : bytes) {
    bytes_fetched_ += amount;
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(here);
    const int route = hosts_.routes[f][t];
    const auto arrived = [this, left, id] {
      if (--*left == 0) queue(id);
    };
    if (route < 0)
      clock_.later(0, arrived);
    else
      clock_.later(hosts_.latencies[f][t],
                   [this, route, size = amount, arrived] { send(route, size, arrived); });
  }
}

// A stage sends its chunks one after the other: two of them on one link would only delay the first.
void NodeEngine::send(int route, double bytes, Clock::Then arrived) {
  if (work_.blueprint().plan.stages.empty()) return clock_.send(route, bytes, std::move(arrived));
  std::deque<Message>& waiting = sending_[route];
  waiting.push_back({bytes, std::move(arrived)});
  if (waiting.size() == 1) send_next(route);
}

void NodeEngine::send_next(int route) {
  clock_.send(route, sending_[route].front().bytes, [this, route] {
    std::deque<Message>& waiting = sending_[route];
    const Clock::Then arrived = std::move(waiting.front().arrived);
    waiting.pop_front();
    if (!waiting.empty()) send_next(route);
    arrived();
  });
}

// --- workers -------------------------------------------------------------------------------------

void NodeEngine::queue(std::int64_t id) {
  at(id).fetched = clock_.now();
  const std::size_t task = task_of(id);
  const std::optional<ChunkId> chunk = work_.home_chunk(task);
  ready_[static_cast<std::size_t>(work_.pool_of(task))].push_back(
      {.list = step_of(id),
       .rank = work_.rank(task),
       .order = static_cast<std::int64_t>(task),
       .home = chunk ? homes_[chunk->value] : -1,
       .fixed = work_.place(task, step_of(id))});
  assign_tasks();
}

void NodeEngine::assign_tasks() {
  if (releasing_several_) return;
  for (int w = 0; w < workers(); ++w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    std::vector<ReadyTask>& ready = ready_[worker.pool];
    if (worker.task >= 0) continue;
    const std::ptrdiff_t found = turns_.pick(ready, w, clock_.now());
    if (found < 0) continue;
    const auto chosen = static_cast<std::size_t>(found);
    turns_.taken(ready[chosen], w);
    const std::int64_t id =
        number(ready[chosen].list, static_cast<std::size_t>(ready[chosen].order));
    ready.erase(ready.begin() + found);
    take(w, id);
  }
  // Once for all that begins and ends at this time.
  if (busy_ == paced_by_ || speeds_will_change_) return;
  speeds_will_change_ = true;
  clock_.later(0, [this] {
    speeds_will_change_ = false;
    for (std::size_t pool = 0; pool < busy_.size(); ++pool) change_speeds(pool);
  });
}

void NodeEngine::take(int w, std::int64_t id) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  const RuntimeCosts& runtime = work_.runtime();
  worker.delay = runtime.task + runtime.access * work_.buffers(task_of(id)) +
                 std::exchange(worker.submission_debt, 0);
  // A worker that waited is called as soon as the task is ready; one that comes from another task
  // first releases what waited for that.
  worker.delay += worker.just_finished ? std::max(0.0, worker.free - clock_.now())
                                       : runtime.wake + std::max(0.0, at(id).ready - clock_.now());
  // At gates a GPU is handed ready tasks while it runs the one before: beginning them takes no
  // time.
  const bool gpu = work_.pools()[worker.pool].kind == DeviceKind::cuda;
  if (gpu && worker.just_finished && waits_at_gates(work_.blueprint().plan)) worker.delay = 0;
  worker.task = id;
  worker.left = 1;
  worker.time_factor = spreads_[worker.pool].factor(step_of(id), task_of(id), w);
  ++busy_[worker.pool];
  at(id).worker = w;
  at(id).taken = clock_.now();
  at(id).start = clock_.now() + worker.delay;
  const std::optional<ChunkId> chunk = work_.home_chunk(task_of(id));
  if (chunk && !only_weight_gradients(work_.list().tasks[task_of(id)])) homes_[chunk->value] = w;
  // At the speed of those at work before; change_speeds() follows where this worker changes it.
  paced_by_[worker.pool] = std::max(paced_by_[worker.pool], 1);
  start_work(w);
}

// Where another number of a pool's workers is busy than before, what is left of their tasks takes
// another time.
void NodeEngine::change_speeds(std::size_t pool) {
  const int before = std::exchange(paced_by_[pool], busy_[pool]);
  if (before == busy_[pool]) return;
  for (int w = 0; w < workers(); ++w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    if (worker.pool != pool || worker.task < 0) continue;
    const double left = clock_.left(worker.under_way);
    if (left <= nothing) continue;  // it ends at this time
    clock_.stop(worker.under_way);
    const double whole = seconds(worker, before);
    const double of_task = std::min(left, worker.left * whole);
    worker.delay = left - of_task;
    worker.left = whole > 0 ? of_task / whole : 0;
    start_work(w);
  }
}

void NodeEngine::start_work(int w) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  const double left = worker.delay + worker.left * seconds(worker, paced_by_[worker.pool]);
  worker.under_way = clock_.work(
      hosts_.hosts[worker.pool], left, [this, w] { finish(w); }, work_.pools()[worker.pool].team);
}

void NodeEngine::finish(int w) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  const std::int64_t id = std::exchange(worker.task, -1);
  turns_.ended(w);
  --busy_[worker.pool];
  const std::size_t task = task_of(id);
  const std::int64_t step = step_of(id);
  at(id).end = clock_.now();
  joules_[worker.pool] += worker.power.watts * (at(id).end - at(id).taken);
  if (work_.several_memories()) {
    const int here = work_.pools()[worker.pool].memory;
    for (const Access& access : work_.list().tasks[task].accesses)
      if (access.mode != Mode::read)
        copy_of(access.buffer, step).valid_in = std::uint64_t{1} << here;
  }
  worker.just_finished = true;
  double late = 0, last = 0;
  releasing_several_ = true;
  for (std::size_t back = 0; back < work_.furthest(); ++back) {
    const std::int64_t later = step + static_cast<std::int64_t>(back);
    if (later >= options_.steps) break;
    for (const std::uint32_t next : work_.successors(later, back, task)) {
      const std::int64_t waiting = number(later, next);
      if (--waits_[static_cast<std::size_t>(waiting)] == 0 &&
          submitted_[static_cast<std::size_t>(later)]) {
        released(waiting, late);
        last = work_.release_seconds(next);
        late += last;
      }
    }
  }
  worker.free = clock_.now() + late - last;
  releasing_several_ = false;
  assign_tasks();
  worker.just_finished = false;
  if (--left_of_step_[static_cast<std::size_t>(step)] > 0) return;
  finished_[static_cast<std::size_t>(step)] = clock_.now();
  callbacks_.step_done(step);
  submit_more();
}

// As the loop of a run does it: without a CPU of its own, the thread that submits wakes for several
// steps at once.
void NodeEngine::submit_more() {
  const std::int64_t many =
      options_.crowded ? std::max<std::int64_t>(work_.steps_in_flight() / 2, 1) : 1;
  if (++steps_done_ % many != 0) return;
  const std::int64_t end = std::min(next_step_ + many, options_.steps);
  const double when = clock_.now() + work_.runtime().wake;
  while (next_step_ < end) submit(next_step_++, when);
}

}  // namespace regatta
