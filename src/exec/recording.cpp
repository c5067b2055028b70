#include "exec/recording.h"

#include <starpu.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "exec/cuda_runner.h"
#include "exec/submission.h"
#include "graph/op.h"
#include "platform/machine.h"
#include "tasks/task_label.h"

namespace regatta {
namespace {

// There is one executor at a time; StarPU's own tasks carry nothing that could lead to it.
std::atomic<Recording*> active = nullptr;

constexpr std::array<const char*, 8> work_names{
    "forward",       "backward",       "statistics",     "normalise",
    "gradient_sums", "gradient_apply", "input_gradient", "weight_gradient"};

std::string job_text(ListKind job) {
  return job == ListKind::prepare ? "prepare" : job == ListKind::evaluate ? "evaluate" : "train";
}

trace::TaskKind kind_of(const Task& task, ListKind job, const std::string& group) {
  TaskLabel label = label_of(task);
  return {.job = job_text(job),
          .phases = std::move(label.phases),
          .group = group,
          .segment = label.segment,
          .part = label.part,
          .chunk = label.chunk,
          .bucket = label.bucket,
          .priority = task.priority,
          .flops = task.flops};
}

// Different for every task of a run, never 0.
std::uint64_t mark_of(const Submission& submission, std::size_t task) {
  return (std::uint64_t{submission.number} + 1) << 24 | std::uint64_t{task};
}

}  // namespace

std::chrono::nanoseconds thread_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void device_task_ended(int worker, TraceClock::time_point& start, TraceClock::time_point& end) {
  // By StarPU's number, each used on its worker's thread alone: when the GPU's last task ended.
  static std::array<TraceClock::time_point, STARPU_NMAXWORKERS> free;
  TraceClock::time_point& before = free[static_cast<std::size_t>(worker)];
  end = TraceClock::now();
  start = std::max(start, before);
  before = end;
}

void note_end(const TaskRun& run) {
  // On a GPU the task's function only handed the work over.
  if (run.starpu->cl->where == STARPU_CUDA)
    device_task_ended(run.times->worker, run.times->start, run.times->end);
  run.times->predicted_us = run.starpu->predicted;
  if (starpu_profiling_task_info* info = run.starpu->profiling_info)
    // StarPU leaves the end unset where data were already on their way.
    run.times->acquire = std::chrono::nanoseconds(static_cast<std::int64_t>(
        1000 * std::max(0.0, starpu_timing_timespec_delay_us(&info->acquire_data_start_time,
                                                             &info->acquire_data_end_time))));
}

LaunchesOf::LaunchesOf(const TaskRun& run) : kernels_(run.submission->kernels) {
  if (!kernels_) return;
  const auto task = run.task - run.list->tasks.data();
  kernels_->begin_mark(mark_of(*run.submission, static_cast<std::size_t>(task)));
}

LaunchesOf::~LaunchesOf() {
  if (kernels_) kernels_->end_mark();
}

Recording::Recording(std::shared_ptr<trace::Recorder> recorder, const Blueprint& blueprint)
    : recorder_(std::move(recorder)),
      blueprint_(blueprint),
      transfers_(starpu_memory_nodes_get_count() > 1 && !waits_at_gates(blueprint.plan)) {
  add_workers();
  active = this;
  if (!recorder_->options().operators || worker_of_device_.empty()) return;
  // From the start, so that graphs are made under its eyes; what comes too early is dropped.
  kernel_log_ = open_kernel_log(remark_);
  if (kernel_log_) clocks_.first = read_clocks();
}

Recording::~Recording() {
  active = nullptr;
  if (on_ && transfers_) starpu_profiling_status_set(STARPU_PROFILING_DISABLE);
}

void Recording::add_workers() {
  const auto groups = groups_of(blueprint_.plan);
  const auto cpus = std::ranges::find(groups, DeviceKind::cpu, &DeviceGroup::kind);
  const std::string cpu_group = cpus == groups.end() ? "host" : (*cpus)->name;
  const std::string node = host_name();
  std::size_t next_gpu = 0;
  int next_cpu = 0;
  for (unsigned id = 0; id < starpu_worker_get_count(); ++id) {
    trace::Worker worker{.name = {}, .group = cpu_group, .node = node, .kind = "cpu"};
    if (starpu_worker_get_type(static_cast<int>(id)) == STARPU_CUDA_WORKER) {
      worker.kind = "cuda";
      for (std::size_t seen = 0; const DeviceGroup* group : groups)
        if (group->kind == DeviceKind::cuda && seen++ == next_gpu) worker.group = group->name;
      worker.name = "cuda " + std::to_string(next_gpu++);
      worker_of_device_[starpu_worker_get_devid(static_cast<int>(id))] =
          static_cast<std::int32_t>(id);
    } else {
      worker.name = "cpu " + std::to_string(next_cpu++);
    }
    workers_.push_back(recorder_->add(worker));
  }
  handed_.resize(workers_.size());
}

// By task of the list: the lane of an exchange. Lanes are assigned in the order in which exchanges
// began, which needs the fewest lanes.
std::vector<std::int32_t> Recording::exchange_lanes(const Submission& submission,
                                                    const TaskList& list) {
  std::vector<std::int32_t> lanes(list.tasks.size(), -1);
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    if (travels(list.tasks[t])) order.push_back(t);
  std::ranges::sort(order, {}, [&](std::size_t t) { return submission.times[t].start; });
  for (const std::size_t t : order)
    lanes[t] = exchange_lane(recorder_->time(submission.times[t].start),
                             recorder_->time(submission.times[t].end));
  return lanes;
}

// A lane without an exchange between `start` and `end`.
std::int32_t Recording::exchange_lane(trace::Time start, trace::Time end) {
  for (auto& [lane, until] : exchange_lanes_)
    if (until <= start) {
      until = end;
      return lane;
    }
  const std::int32_t lane =
      recorder_->add(trace::Worker{.name = "exchange " + std::to_string(exchange_lanes_.size()),
                                   .group = "network",
                                   .node = host_name(),
                                   .kind = trace::network_kind});
  exchange_lanes_.emplace_back(lane, end);
  return lane;
}

std::int32_t Recording::first_kind(const TaskList& list) {
  const auto [found, fresh] = kinds_.try_emplace(&list);
  if (!fresh) return found->second;
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    const std::int32_t number = recorder_->add(
        kind_of(task, list.job, task.on_host ? "host" : blueprint_.group(task.group).name));
    if (t == 0) found->second = number;
  }
  return found->second;
}

std::int32_t Recording::own_kind(const char* phases) {
  const auto [found, fresh] = own_kinds_.try_emplace(phases);
  if (fresh)
    found->second = recorder_->add(trace::TaskKind{.job = "train", .phases = phases, .group = {}});
  return found->second;
}

bool Recording::begin(Submission& submission, const TaskList& list) {
  const bool wanted = recorder_->wants(submission.input.recorded_as);
  if (wanted != on_) {
    if (transfers_)
      starpu_profiling_status_set(wanted ? STARPU_PROFILING_ENABLE : STARPU_PROFILING_DISABLE);
    on_ = wanted;
    if (!wanted) take_links();
  }
  if (!wanted) {
    pass_kernels();
    return false;
  }
  ++lists_;
  submission.kernels = kernel_log_.get();
  submission.recording = this;
  submission.times.resize(list.tasks.size());
  if (recorder_->options().operators)
    for (TaskTimes& times : submission.times) times.depth = std::max(times.depth, Depth::operators);
  return true;
}

void Recording::take(const Submission& submission, TraceClock::time_point finished) {
  const std::int64_t step = submission.input.recorded_as;
  // Also of the step before the first: that is where the window begins.
  if (step >= recorder_->options().first_step - 1 && step > 0 &&
      (step <= recorder_->options().last_step))
    recorder_->take(trace::Mark{"step", step, recorder_->time(finished)});
  if (!submission.recording) return;
  ++lists_taken_;
  const TaskList& list = *submission.runs.front().list;
  const std::int32_t kind = first_kind(list);
  const std::int64_t first_id = recorder_->first_id(list.tasks.size());
  dependencies_.follow(list, submission.number, first_id, edges_);
  for (const auto& [task, on] : edges_) piece_.dependencies.push_back({task, on});
  const std::vector<std::int32_t> lanes = exchange_lanes(submission, list);
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const TaskTimes& times = submission.times[t];
    const bool exchanges = travels(list.tasks[t]);
    const auto worker = static_cast<std::size_t>(std::max(times.worker, 0));
    trace::Task task;
    task.id = first_id + static_cast<std::int64_t>(t);
    task.kind = kind + static_cast<std::int32_t>(t);
    task.step = step;
    task.start = recorder_->time(times.start);
    task.end = std::max(task.start, recorder_->time(times.end));
    task.worker = exchanges ? lanes[t] : workers_[worker];
    task.submit = recorder_->time(times.submit);
    if (exchanges) {
      piece_.tasks.push_back(task);
      continue;
    }
    task.acquire = times.acquire.count();
    const double predicted =
        times.predicted_us > 0 ? times.predicted_us : submission.runs[t].predicted_us;
    task.predicted = static_cast<trace::Time>(1000 * predicted);
    piece_.tasks.push_back(task);
    take_operators(times, task);
    if (kernel_log_ && starpu_worker_get_type(static_cast<int>(worker)) == STARPU_CUDA_WORKER)
      kernels_.add(DeviceTask{task.id, mark_of(submission, t),
                              starpu_worker_get_devid(static_cast<int>(worker)), task.start,
                              task.end});
  }
  take_own(step);
  if (kernel_log_) take_kernels(false);
  hand_over();
}

void Recording::hand_over() {
  recorder_->take(piece_);
  piece_.tasks.clear();
  piece_.dependencies.clear();
  piece_.operators.clear();
}

void Recording::take_operators(const TaskTimes& times, const trace::Task& task) {
  for (const OperatorTime& each : times.operators) {
    const std::string phase(phase_name(each.phase));
    const std::string work =
        runs_part(each.phase) ? work_names[static_cast<std::size_t>(each.work)] : phase;
    const std::int32_t kind = recorder_->number_of(
        each.node ? trace::OperatorKind{each.node->name, std::string(each.node->op->name), work}
                  : trace::OperatorKind{phase, phase, phase});
    piece_.operators.push_back({task.id, kind, task.worker, recorder_->time(each.start),
                                std::max(recorder_->time(each.start), recorder_->time(each.end))});
  }
}

void Recording::take_own(std::int64_t step) {
  std::vector<OwnTime> own;
  {
    const std::lock_guard lock(own_mutex_);
    own.swap(own_);
  }
  for (const OwnTime& each : own) {
    trace::Task task;
    task.id = recorder_->first_id(1);
    task.kind = own_kind(each.phases);
    task.worker = workers_[static_cast<std::size_t>(each.worker)];
    task.step = step;
    task.start = std::max<trace::Time>(0, recorder_->time(each.start));
    task.end = std::max(task.start, recorder_->time(each.end));
    task.ready = task.start;  // StarPU does not say what it waited for
    piece_.tasks.push_back(task);
  }
}

ClockMatch::Reading Recording::read_clocks() const {
  const TraceClock::time_point before = TraceClock::now();
  const std::uint64_t device = kernel_log_->now();
  const TraceClock::time_point after = TraceClock::now();
  return {device, recorder_->time(before + (after - before) / 2)};
}

void Recording::take_kernels(bool all) {
  kernels_.add(kernel_log_->take(all));
  clocks_.last = read_clocks();
  for (const KernelTimes::Found& each : kernels_.match(clocks_, all)) {
    const std::int32_t kind = recorder_->number_of(
        trace::OperatorKind{kernel_label(kernels_.name(each.name)), "kernel", "kernel"});
    const auto worker = static_cast<std::size_t>(worker_of_device_.at(each.device));
    const trace::Time start = std::max<trace::Time>(0, each.start);
    piece_.operators.push_back(
        {each.task, kind, workers_[worker], start, std::max(start, each.end)});
  }
}

// Nothing on its way is recorded now.
void Recording::pass_kernels() {
  if (!kernel_log_ || lists_taken_ != lists_) return;
  if (lists_ > 0) {
    close_kernels();
    return;
  }
  cuda::KernelNotes early = kernel_log_->take(false);
  kernels_.add({std::move(early.names), {}, {}});
}

void Recording::close_kernels() {
  take_kernels(true);
  hand_over();
  kernel_log_.reset();  // a run is faster without it
}

void Recording::close() {
  if (kernel_log_) close_kernels();
  if (on_) take_links();
}

void Recording::copied(bool to_gpu, std::size_t bytes) {
  Copies& copies = to_gpu ? to_gpu_ : from_gpu_;
  copies.bytes += static_cast<std::int64_t>(bytes);
  ++copies.count;
}

// StarPU counts from when it is told to profile, and goes on when it no longer is.
void Recording::take_links() {
  const auto name_of = [](unsigned node) {
    char name[64];
    starpu_memory_node_get_name(node, name, sizeof name);
    return std::string(name);
  };
  if (const int gpu = starpu_worker_get_by_type(STARPU_CUDA_WORKER, 0); gpu >= 0) {
    const std::string there = name_of(starpu_worker_get_memory_node(static_cast<unsigned>(gpu)));
    const std::string here = name_of(STARPU_MAIN_RAM);
    for (Copies* copies : {&to_gpu_, &from_gpu_}) {
      if (copies->count == 0) continue;
      const bool to_gpu = copies == &to_gpu_;
      recorder_->take(trace::Link{to_gpu ? here : there, to_gpu ? there : here,
                                  copies->bytes.exchange(0), copies->count.exchange(0)});
    }
  }
  if (!transfers_) return;
  for (int bus = 0; bus < starpu_bus_get_count(); ++bus) {
    starpu_profiling_bus_info info{};
    if (starpu_bus_get_profiling_info(bus, &info) != 0 || info.transfer_count == 0) continue;
    recorder_->take(trace::Link{name_of(static_cast<unsigned>(starpu_bus_get_src(bus))),
                                name_of(static_cast<unsigned>(starpu_bus_get_dst(bus))),
                                static_cast<std::int64_t>(info.transferred_bytes),
                                info.transfer_count});
  }
}

void Recording::note_own(const OwnTime& time) {
  const std::lock_guard lock(own_mutex_);
  if (time.worker >= 0) own_.push_back(time);
}

Recording::OwnTask::~OwnTask() {
  Recording* recording = active;
  if (!recording || !recording->on_) return;
  recording->note_own({phases_, starpu_worker_get_id(), start_, TraceClock::now()});
}

void Recording::own_device_task_begins() {
  Recording* recording = active;
  const int worker = starpu_worker_get_id();
  if (recording && worker >= 0)
    recording->handed_[static_cast<std::size_t>(worker)].push_back(TraceClock::now());
}

void Recording::own_device_task_ends(const char* phases) {
  Recording* recording = active;
  const int worker = starpu_worker_get_id();
  if (!recording || worker < 0) return;
  // Empty on a CPU worker, and for a task from before the recording.
  std::deque<TraceClock::time_point>& handed = recording->handed_[static_cast<std::size_t>(worker)];
  if (handed.empty()) return;
  OwnTime time{phases, worker, handed.front(), {}};
  handed.pop_front();
  device_task_ended(worker, time.start, time.end);
  if (recording->on_) recording->note_own(time);
}

}  // namespace regatta
