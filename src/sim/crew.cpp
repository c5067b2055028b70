#include "sim/crew.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

namespace regatta::sim {
namespace {

constexpr double nothing = 1e-9;  // seconds that count as none

}  // namespace

Crew::Crew(World& world, const Work& work, const Berth& berth, Options options, Events events)
    : world_(world),
      work_(work),
      berth_(berth),
      options_(std::move(options)),
      events_(std::move(events)),
      turns_(workers_of(work.blueprint().plan).size()),
      ready_(work.pools().size()),
      busy_(work.pools().size(), 0),
      homes_(work.blueprint().chunks.size(), -1) {
  const auto steps = static_cast<std::size_t>(options_.steps);
  happened_.resize(count() * steps);
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
  const std::vector<double> slowness = slowness_of(work.blueprint().plan);
  for (std::size_t w = 0; w < std::min(slowness.size(), workers_.size()); ++w)
    workers_[w].slowness = slowness[w];
  if (!work.several_memories()) return;
  for (std::uint32_t b = 0; b < work.list().buffers.size(); ++b) {
    first_place_.push_back(places_.size());
    const int home = work.home_memory(b);
    places_.resize(places_.size() + static_cast<std::size_t>(work.list().buffers[b].copies),
                   Place{home < 0 ? 0 : std::uint64_t{1} << home});
  }
}

void Crew::begin() {
  const std::int64_t first = std::min<std::int64_t>(work_.steps_in_flight(), options_.steps);
  for (std::int64_t step = 0; step < first; ++step) submit(step, world_.now());
  next_step_ = first;
}

// --- submission ----------------------------------------------------------------------------------

void Crew::submit(std::int64_t step, double when) {
  when = std::max(when, submitting_until_) + work_.runtime().step;
  submitting_until_ = when + work_.submission_seconds();
  if (options_.crowded) rob(work_.submission_seconds());
  submitted_[static_cast<std::size_t>(step)] = true;
  gathering_ = true;
  for (std::size_t t = 0; t < count(); ++t) {
    const std::int64_t id = number(step, t);
    at(id).submit = when + work_.submitted_after(t);
    if (waits_[static_cast<std::size_t>(id)] == 0) released(id);
  }
  gathering_ = false;
  hand_out();
}

// The thread that submits wakes on a CPU whose worker has nothing to do, if there is one. When work
// comes for that worker too, they take turns of milliseconds: who is done by then robbed nobody.
// Lists that take longer submit themselves, if the plan was made for such a machine.
void Crew::rob(double seconds) {
  const bool room = std::ranges::any_of(workers_, [](const Worker& w) { return w.task < 0; });
  if (!room) workers_.front().stolen += seconds;
}

// Nothing that it waits for is left; perhaps it is still to be submitted. `late`: others that
// waited for the same are released before it.
void Crew::released(std::int64_t id, double late) {
  const double wait = at(id).submit - world_.now();
  if (wait > nothing)
    world_.later(wait, [this, id] { become_ready(id); });
  else
    become_ready(id, late);
}

// --- data ----------------------------------------------------------------------------------------

void Crew::become_ready(std::int64_t id, double late) {
  at(id).ready = world_.now() + late;
  const std::vector<BucketId>& buckets = work_.exchanged(task_of(id));
  if (buckets.empty()) return fetch(id);
  offers_[static_cast<std::size_t>(id)] = static_cast<std::uint32_t>(buckets.size());
  for (const BucketId bucket : buckets) events_.offer(step_of(id), bucket);
}

void Crew::exchanged(std::int64_t step, BucketId bucket) {
  const std::int64_t id = number(step, work_.awaits(bucket));
  if (--offers_[static_cast<std::size_t>(id)] == 0) fetch(id);
}

Crew::Place& Crew::place_of(std::uint32_t buffer, std::int64_t step) {
  const auto copies = static_cast<std::size_t>(work_.list().buffers[buffer].copies);
  return places_[first_place_[buffer] + static_cast<std::size_t>(step) % copies];
}

// What it reads and its memory does not have comes over the bus, as soon as it is known to be
// wanted: StarPU fetches for the next task while one runs.
void Crew::fetch(std::int64_t id) {
  if (!work_.several_memories()) return queue(id);
  const Task& task = work_.list().tasks[task_of(id)];
  const int here = work_.pools()[static_cast<std::size_t>(work_.pool_of(task_of(id)))].memory;
  const std::uint64_t mine = std::uint64_t{1} << here;
  std::map<int, double> bytes;  // by memory they come from
  for (const Access& access : task.accesses) {
    Place& place = place_of(access.buffer, step_of(id));
    if (access.mode == Mode::write || place.valid == 0 || (place.valid & mine) != 0) continue;
    const int from = std::countr_zero(place.valid);
    bytes[from] += static_cast<double>(work_.list().buffers[access.buffer].bytes);
    place.valid |= mine;
  }
  if (bytes.empty()) return queue(id);
  const auto left = std::make_shared<std::size_t>(bytes.size());
  for (const auto& [from, amount] : bytes) {
    bytes_fetched_ += amount;
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(here);
    const int route = berth_.routes[f][t];
    const auto arrived = [this, left, id] {
      if (--*left == 0) queue(id);
    };
    if (route < 0)
      world_.later(0, arrived);
    else
      world_.later(berth_.latencies[f][t],
                   [this, route, size = amount, arrived] { send(route, size, arrived); });
  }
}

// A stage sends its chunks one after the other: two of them on one link would only delay the first.
void Crew::send(int route, double bytes, World::Then arrived) {
  if (work_.blueprint().plan.stages.empty()) return world_.send(route, bytes, std::move(arrived));
  std::deque<Parcel>& waiting = sending_[route];
  waiting.push_back({bytes, std::move(arrived)});
  if (waiting.size() == 1) send_next(route);
}

void Crew::send_next(int route) {
  world_.send(route, sending_[route].front().bytes, [this, route] {
    std::deque<Parcel>& waiting = sending_[route];
    const World::Then arrived = std::move(waiting.front().arrived);
    waiting.pop_front();
    if (!waiting.empty()) send_next(route);
    arrived();
  });
}

// --- workers -------------------------------------------------------------------------------------

void Crew::queue(std::int64_t id) {
  at(id).fetched = world_.now();
  const std::size_t task = task_of(id);
  const std::optional<ChunkId> chunk = work_.home_chunk(task);
  ready_[static_cast<std::size_t>(work_.pool_of(task))].push_back(
      {.list = step_of(id),
       .rank = work_.rank(task),
       .order = static_cast<std::int64_t>(task),
       .home = chunk ? homes_[chunk->value] : -1,
       .fixed = work_.place(task, step_of(id))});
  hand_out();
}

void Crew::hand_out() {
  if (gathering_) return;
  for (int w = 0; w < workers(); ++w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    std::vector<ReadyTask>& ready = ready_[worker.pool];
    if (worker.task >= 0) continue;
    const std::ptrdiff_t found = turns_.pick(ready, w);
    if (found < 0) continue;
    const auto chosen = static_cast<std::size_t>(found);
    turns_.taken(ready[chosen]);
    const std::int64_t id =
        number(ready[chosen].list, static_cast<std::size_t>(ready[chosen].order));
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
    take(w, id);
  }
}

void Crew::take(int w, std::int64_t id) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  settle(worker.pool);
  const RuntimeCosts& runtime = work_.runtime();
  double delay =
      runtime.task + runtime.access * work_.buffers(task_of(id)) + std::exchange(worker.stolen, 0);
  // A worker that waited is called as soon as the task is ready; one that comes from another task
  // lets go of that first.
  delay += worker.just_finished ? std::max(0.0, worker.free - world_.now())
                                : runtime.wake + std::max(0.0, at(id).ready - world_.now());
  worker.task = id;
  worker.left = 1;
  worker.luck = spreads_[worker.pool].factor(step_of(id), task_of(id), w);
  worker.since = world_.now() + delay;
  ++busy_[worker.pool];
  at(id).worker = w;
  at(id).start = worker.since;
  if (const auto chunk = work_.home_chunk(task_of(id))) homes_[chunk->value] = w;
  if (submits(work_.list().tasks[task_of(id)])) begin_to_submit(worker);
  work_on(w);
}

// What a task submits is handed over one by one while it runs, which takes as long whoever else is
// at work; the next of its kind comes last, with its end.
void Crew::begin_to_submit(const Worker& worker) {
  const std::int64_t step = step_of(worker.task);
  std::vector<std::uint32_t> handed;
  double whole = 0, worth = 0;
  for (const std::uint32_t next : work_.successors(step, 0, task_of(worker.task))) {
    const Task& task = work_.list().tasks[next];
    if (submits(task)) continue;
    handed.push_back(next);
    whole += worth_to_submit(task);
  }
  const double begin = worker.since - world_.now();
  for (const std::uint32_t next : handed) {
    worth += worth_to_submit(work_.list().tasks[next]);
    world_.later(begin + worth / whole * seconds(worker, busy_[worker.pool]),
                 [this, id = number(step, next)] {
                   at(id).submit = world_.now();
                   if (--waits_[static_cast<std::size_t>(id)] == 0) released(id);
                 });
  }
}

// Brings what is left of a pool's tasks up to date, before the number of busy workers changes.
void Crew::settle(std::size_t pool) {
  const double now = world_.now();
  for (Worker& worker : workers_) {
    if (worker.pool != pool || worker.task < 0 || now <= worker.since) continue;
    const double whole = seconds(worker, busy_[pool]);
    worker.left = whole > 0 ? std::max(0.0, worker.left - (now - worker.since) / whole) : 0;
    worker.since = now;
  }
}

// SimGrid is told a piece that is surely needed; if the worker was slowed down meanwhile, another.
void Crew::work_on(int w) {
  const Worker& worker = workers_[static_cast<std::size_t>(w)];
  const std::size_t task = task_of(worker.task);
  const double before = std::max(0.0, worker.since - world_.now());
  const double piece =
      before + worker.left * worker.slowness * worker.luck * work_.least_seconds(task, shift(task));
  world_.work(
      berth_.hosts[worker.pool], std::max(piece, nothing), [this, w] { piece_done(w); },
      work_.pools()[worker.pool].team);
}

void Crew::piece_done(int w) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  settle(worker.pool);
  const double left = worker.left * seconds(worker, busy_[worker.pool]);
  if (left > 10 * nothing || worker.since > world_.now() + nothing)
    work_on(w);
  else
    finish(w);
}

void Crew::finish(int w) {
  Worker& worker = workers_[static_cast<std::size_t>(w)];
  const std::int64_t id = std::exchange(worker.task, -1);
  --busy_[worker.pool];
  const std::size_t task = task_of(id);
  const std::int64_t step = step_of(id);
  at(id).end = world_.now();
  if (work_.several_memories()) {
    const int here = work_.pools()[worker.pool].memory;
    for (const Access& access : work_.list().tasks[task].accesses)
      if (access.mode != Mode::read) place_of(access.buffer, step).valid = std::uint64_t{1} << here;
  }
  worker.just_finished = true;
  double late = 0, last = 0;
  gathering_ = true;
  for (std::size_t back = 0; back < work_.furthest(); ++back) {
    const std::int64_t later = step + static_cast<std::int64_t>(back);
    if (later >= options_.steps) break;
    for (const std::uint32_t next : work_.successors(later, back, task)) {
      const std::int64_t waiting = number(later, next);
      if (submits(work_.list().tasks[task])) {
        if (!submits(work_.list().tasks[next])) continue;  // handed over while it ran
        at(waiting).submit = std::max(at(waiting).submit, world_.now());
      }
      if (--waits_[static_cast<std::size_t>(waiting)] == 0 &&
          submitted_[static_cast<std::size_t>(later)]) {
        released(waiting, late);
        last = work_.release_seconds(task, next);
        late += last;
      }
    }
  }
  worker.free = world_.now() + late - last;
  gathering_ = false;
  hand_out();
  worker.just_finished = false;
  if (--left_of_step_[static_cast<std::size_t>(step)] > 0) return;
  finished_[static_cast<std::size_t>(step)] = world_.now();
  events_.step_done(step);
  submit_more();
}

// As the loop of a run does it: without a CPU of its own, the thread that submits wakes for several
// steps at once.
void Crew::submit_more() {
  const std::int64_t many =
      options_.crowded ? std::max<std::int64_t>(work_.steps_in_flight() / 2, 1) : 1;
  if (++steps_done_ % many != 0) return;
  const std::int64_t end = std::min(next_step_ + many, options_.steps);
  const double when = world_.now() + work_.runtime().wake;
  while (next_step_ < end) submit(next_step_++, when);
}

}  // namespace regatta::sim
