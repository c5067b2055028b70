#include "tickets/worker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"

namespace regatta::tickets {
namespace {

// A lease is renewed so often while it lasts once: a few beats may be late or lost.
constexpr double beats_per_lease = 6;

double seconds_of_day() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Images a second that a finished job of a worker on this machine measured; 0 if there is none.
double known_speed(const SearchFolder& folder, const std::string& machine) {
  double speed = 0;
  for (std::size_t job = 0; job < folder.jobs().size(); ++job) {
    const JobState& state = folder.state(job);
    if (!state.done() || state.last().body.value("machine", "") != machine) continue;
    if (const double found = state.last().body.value("images_per_s", 0.0); found > 0) speed = found;
  }
  return speed;
}

double median(std::vector<double> values) {
  if (values.empty()) return 1;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

bool says_no_room(const std::string& error) {
  return std::ranges::any_of(std::array{ENOSPC, EDQUOT, EROFS}, [&](int cause) {
    return error.find(std::strerror(cause)) != std::string::npos;
  });
}

struct Worker::Slot {
  std::size_t job = 0;
  int claim = 0;
  std::unique_ptr<RunningJob> running;
  std::optional<Outcome> outcome;  // until it is published
  Seconds started{0};
  bool over = false;  // published or taken over by another worker: the slot is free
  int slots = 1;      // how many slots the worker had when the job began
};

Worker::Worker(FileLayer& files, SearchFolder& folder, Trainer& trainer, WorkerOptions options)
    : files_(files),
      folder_(folder),
      trainer_(trainer),
      options_(std::move(options)),
      watch_(files, folder.path(), folder.search().lease) {
  heartbeat_.machine = options_.machine;
  heartbeat_.slots = options_.slots.slots();
}

Worker::~Worker() {
  slots_.clear();
  heartbeat_.ended = true;
  try {
    beat();
  } catch (const Error&) {
    // Others find out by their own clocks.
  }
}

bool Worker::round() {
  try {
    if (files_.now() - last_beat_ >= folder_.search().lease / beats_per_lease) beat();
    for (const auto& slot : slots_) look_after(*slot);
    std::erase_if(slots_, [](const auto& slot) { return slot->over; });
    if (stopping_) return !slots_.empty();
    folder_.refresh();
    if (slots_.empty() && folder_.over()) return false;
    if (!no_room_) claim_jobs();
    trouble_since_.reset();
  } catch (const InputError& error) {
    const Seconds now = files_.now();
    if (!trouble_since_) {
      trouble_since_ = now;
      tell(std::string(error.what()) + "; trying again");
    }
    if (now - *trouble_since_ > folder_.search().lease) throw;
  }
  if (no_room_) throw InputError(*no_room_);
  return true;
}

void Worker::stop() {
  stopping_ = true;
  for (const auto& slot : slots_)
    if (slot->running) slot->running->stop();
}

Seconds Worker::pause() const {
  return std::clamp(folder_.search().lease / 300, Seconds(0.01), Seconds(1));
}

void Worker::beat() {
  const Seconds now = files_.now();
  ++heartbeat_.beat;
  note_work();
  // Where the file cannot be written, the count goes on: others see a jump, or take the worker for
  // gone, and then its jobs are theirs.
  last_beat_ = now;
  files_.replace(heartbeat_file(folder_.path(), options_.name), heartbeat_.to_json().dump() + "\n");
}

void Worker::note_work() {
  const Seconds now = files_.now();
  heartbeat_.work.clear();
  for (const auto& slot : slots_) {
    const Job& job = folder_.jobs()[slot->job];
    const auto images = static_cast<double>(job.steps * folder_.search().samples_per_step);
    const double done = (now - slot->started).count() * heartbeat_.images_per_s;
    // A job that takes longer than expected is nearly done until it is.
    heartbeat_.work.push_back({job.id, std::max(images - done, images / 50)});
  }
}

void Worker::look_after(Slot& slot) {
  JobLog& log = folder_.log(slot.job);
  const Job& job = folder_.jobs()[slot.job];
  if (!slot.outcome && slot.running) {
    slot.outcome = slot.running->poll();
    if (slot.outcome) slot.running.reset();
  }
  if (slot.outcome) {
    publish(slot);
    return;
  }
  // One file to look for, once a round.
  if (log.refresh().next() > slot.claim + 1) {
    tell(job.id + ": another worker took it over");
    slot.running.reset();
    slot.over = true;
  }
}

void Worker::publish(Slot& slot) {
  const Job& job = folder_.jobs()[slot.job];
  JobLog& log = folder_.log(slot.job);
  const Outcome& outcome = *slot.outcome;
  Json body = now_here();
  body["claim"] = slot.claim;
  LogEntry entry{EntryKind::result, options_.name, {}};
  if (outcome.kind == Outcome::Kind::finished) {
    body["seconds"] = (files_.now() - slot.started).count();
    body["images_per_s"] = outcome.images_per_s;
    body.update(outcome.result);
  } else {
    entry.kind = outcome.kind == Outcome::Kind::failed ? EntryKind::failed : EntryKind::released;
    body["why"] = outcome.why;
  }
  entry.body = std::move(body);
  const bool ours = log.append(slot.claim + 1, entry);
  slot.over = true;
  if (!ours) {
    tell(job.id + ": another worker took it over");
    return;
  }
  if (outcome.images_per_s > 0) heartbeat_.images_per_s = outcome.images_per_s;
  // Where fewer jobs were ready than there are slots, the speed says nothing about slots.
  if (outcome.kind == Outcome::Kind::finished && slot.slots == options_.slots.slots() &&
      slots_.size() == static_cast<std::size_t>(slot.slots))
    options_.slots.measured(slot.slots, outcome.images_per_s);
  heartbeat_.slots = options_.slots.slots();
  switch (outcome.kind) {
    case Outcome::Kind::finished:
      trainer_.tidy(folder_, slot.job, slot.claim);
      tell(job.id + ": done" + (outcome.why.empty() ? "" : ", " + outcome.why));
      break;
    case Outcome::Kind::failed:
      tell(job.id + ": " + outcome.why);
      break;
    case Outcome::Kind::stopped:
      tell(job.id + ": saved and given back");
      break;
    case Outcome::Kind::no_room:
      no_room_ = outcome.why;
      break;
  }
}

void Worker::claim_jobs() {
  while (slots_.size() < static_cast<std::size_t>(options_.slots.slots())) {
    const std::optional<std::size_t> job = choose();
    if (!job) return;
    JobLog& log = folder_.log(*job);
    const JobState& state = log.state();
    // A claim of our own that we do not know of: the answer to it was lost.
    if (state.claimed() && state.last().worker == options_.name) {
      if (!start(*job, state.next() - 1)) return;
      continue;
    }
    const int number = state.next();
    if (log.append(number, {EntryKind::claim, options_.name, now_here()}))
      if (!start(*job, number)) return;
  }
}

bool Worker::start(std::size_t job, int claim) {
  auto slot = std::make_unique<Slot>();
  slot->job = job;
  slot->claim = claim;
  slot->started = files_.now();
  slot->slots = options_.slots.slots();
  if (heartbeat_.images_per_s <= 0)
    heartbeat_.images_per_s = known_speed(folder_, options_.machine);
  tell(folder_.jobs()[job].id + ": claimed");
  try {
    slot->running = trainer_.start(folder_, job, claim, slot->slots);
  } catch (const InputError& error) {
    slot->outcome =
        Outcome{.kind = says_no_room(error.what()) ? Outcome::Kind::no_room : Outcome::Kind::failed,
                .why = error.what()};
  }
  const bool started = slot->running != nullptr;
  slots_.push_back(std::move(slot));
  beat();  // so that others reckon with it
  return started;
}

bool Worker::open_for_claim(std::size_t job) {
  const JobState& state = folder_.state(job);
  if (state.done() || folder_.hopeless(job)) return false;
  const bool running =
      std::ranges::any_of(slots_, [&](const auto& slot) { return slot->job == job; });
  if (running) return false;
  if (!state.claimed() || state.last().worker == options_.name) return true;
  return watch_.gone(state.last().worker);
}

std::vector<std::string> Worker::others() {
  std::vector<std::string> names;
  for (std::string name : files_.list(folder_.path() / "workers")) {
    if (!name.ends_with(".json")) continue;
    name.resize(name.size() - 5);
    if (name == options_.name) continue;
    watch_.gone(name);
    if (watch_.seen_alive(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// The job for a free slot of this worker: schedules all open jobs on the slots of all live workers.
std::optional<std::size_t> Worker::choose() {
  struct LiveWorker {
    std::string name;
    Heartbeat heartbeat;
  };
  note_work();
  std::vector<LiveWorker> live{{options_.name, heartbeat_}};
  for (const std::string& name : others()) live.push_back({name, *watch_.heartbeat(name)});
  std::ranges::sort(live, {}, &LiveWorker::name);
  std::vector<double> known;
  for (const LiveWorker& each : live)
    if (each.heartbeat.images_per_s > 0) known.push_back(each.heartbeat.images_per_s);
  const double median_speed = median(known);  // taken for workers that have measured none yet

  std::vector<WorkerSpeed> workers;
  std::optional<std::size_t> own;  // our first free slot among them
  std::map<std::string, Seconds> under_way;
  for (const LiveWorker& each : live) {
    const double speed =
        each.heartbeat.images_per_s > 0 ? each.heartbeat.images_per_s : median_speed;
    const bool us = each.name == options_.name;
    for (const Heartbeat::Work& work : each.heartbeat.work)
      under_way[work.job] = Seconds(work.left / speed);
    const std::size_t busy = us ? slots_.size() : each.heartbeat.work.size();
    for (int slot = 0; slot < each.heartbeat.slots; ++slot) {
      Seconds free_at{0};
      if (static_cast<std::size_t>(slot) < each.heartbeat.work.size())
        free_at = Seconds(each.heartbeat.work[static_cast<std::size_t>(slot)].left / speed);
      if (us && static_cast<std::size_t>(slot) == busy) own = workers.size();
      workers.push_back({speed, free_at});
    }
  }
  if (!own) return std::nullopt;

  std::vector<OpenJob> open;
  std::vector<std::size_t> numbers;             // of the open jobs
  std::map<std::string, std::size_t> place_of;  // among the open jobs
  for (std::size_t job = 0; job < folder_.jobs().size(); ++job) {
    if (!open_for_claim(job)) continue;
    const Job& its = folder_.jobs()[job];
    OpenJob each;
    each.job.work = static_cast<double>(its.steps * folder_.search().samples_per_step);
    for (const std::string& before : its.after()) {
      if (folder_.state(folder_.index_of(before)).done()) continue;
      if (const auto at = place_of.find(before); at != place_of.end())
        each.job.after.push_back(at->second);
      else
        each.ready_at = std::max({each.ready_at, under_way[before], Seconds(1e-9)});
    }
    place_of[its.id] = open.size();
    numbers.push_back(job);
    open.push_back(std::move(each));
  }
  const std::optional<std::size_t> next = next_job(open, workers, *own);
  return next ? std::optional(numbers[*next]) : std::nullopt;
}

Json Worker::now_here() const { return {{"machine", options_.machine}, {"at", seconds_of_day()}}; }

void Worker::tell(const std::string& line) const {
  if (options_.tell) options_.tell(line);
}

}  // namespace regatta::tickets
