#include "exec/executor.h"

#include <starpu.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>

#include "base/error.h"
#include "exec/buffers.h"
#include "exec/codelets.h"
#include "exec/copies.h"
#include "exec/cuda_runner.h"
#include "exec/gates.h"
#include "exec/observe.h"
#include "exec/prepared_list.h"
#include "exec/rank_messages.h"
#include "exec/redux.h"
#include "exec/runtime.h"
#include "exec/scheduler.h"
#include "exec/submission.h"
#include "exec/submit_task.h"
#include "exec/tensors.h"
#include "exec/worker_ids.h"
#include "exec/worker_times.h"
#include "exec/workers.h"
#include "platform/machine.h"

namespace regatta {
namespace {

RuntimeOptions runtime_options(const Plan& plan) {
  require_no_fault(hindrances(plan));
  RuntimeOptions options{
      .cpu_workers = plan.loaders, .team = 1, .gpus = 0, .scheduler = plan.scheduler};
  for (const DeviceGroup* group : groups_of(plan)) {
    if (group->kind == DeviceKind::cpu) {
      options.cpu_workers += group->workers;
      options.team = group->team;
    }
    if (group->kind == DeviceKind::cuda) options.gpus += 1;
  }
  if (options.gpus > 0) require_cuda();
  return options;
}

// CUDA's number of the plan's GPU; -1: none.
int gpu_device(const WorkerIds& ids) {
  for (const int worker : ids.gpu)
    if (worker >= 0) return starpu_worker_get_devid(worker);
  return -1;
}

}  // namespace

class Executor::Impl {
 public:
  Impl(const Graph& graph, const Plan& plan, ExecOptions options)
      : blueprint(
            make_blueprint(graph, plan, options.numbers, options.training, options.ranks.place)),
        options_(std::move(options)),
        codelets_(plan.perf_model, graph.name()),
        runtime_(runtime_options(plan)),
        ids_(plan),
        last_workers_(blueprint.chunks.size()),
        buffers_(blueprint, ids_.memory_nodes, !gated_, options_.training) {
    for (std::atomic<int>& worker : last_workers_) worker = -1;
    codelets_.describe(&guarded<&Workers::run_on_cpu>, &guarded<&Workers::run_on_gpu>);
    if (plan.reduction == Reduction::redux) buffers_.set_reduction(redux_.add(), redux_.zero());
    if (blueprint.ranks.several()) messages_.emplace(blueprint, options_.ranks, spare_cpu_);
    // An order that cannot be followed is to be told before anything waits for it.
    if (options_.training && plan.placement == Placement::fixed) prepared(ListKind::train);
  }

  // StarPU may still be letting go of finished tasks; what they use goes after it has.
  ~Impl() {
    // Tasks that wait for messages would never end, here and on the other ranks.
    const bool undone =
        std::ranges::any_of(recent_, [](const auto& each) { return each->remaining > 0; });
    if (messages_ && (undone || std::uncaught_exceptions() > 0))
      messages_->give_up("it ended before its work was done");
    wait_for_all();
    if (!messages_) return;
    messages_.reset();
    // Buckets of messages that were cut short.
    for (const auto& memory : buffers_.host_memory()) options_.ranks.transport->leave(memory);
  }

  void give_up(const std::string& why) noexcept {
    if (messages_) messages_->give_up(why);
  }

  std::shared_ptr<Submission> submit(ListKind job, StepInput input, bool checks_values = false) {
    PreparedList& prepared = this->prepared(job);
    const TaskList& list = prepared.list;
    const std::shared_ptr<Submission> submission =
        make_submission(blueprint, job, std::move(input), options_.seed);
    submission->checks_values = checks_values;
    if (job != ListKind::prepare) submission->exchanged_as = lists_exchanged_++;
    submission->undone = submission->remaining = list.tasks.size();
    const std::size_t step = submission->number = steps_submitted_++;
    submission->step = prepared.submitted++;
    if (sink_) {
      submission->times.resize(list.tasks.size());
      for (TaskTimes& times : submission->times) times.depth = depth_;
    }
    if (recording_) recording_->begin(*submission, list);
    make_runs(*submission, prepared);
    if (gated_) submission->gates = gates_.add(list, step, submission->runs);
    // A worker still touches a submission just after its waiter was woken: the latest are kept.
    recent_.push_back(submission);
    if (recent_.size() > 2 * static_cast<std::size_t>(blueprint.plan.steps_in_flight) + 2)
      recent_.pop_front();
    if (gated_)
      open_list(*submission);
    else
      hand_over(*submission, prepared);
    return submission;
  }

  // The host may access tensors for as long as nothing is submitted.
  Tensors& tensors() {
    let_pass();
    return tensors_;
  }
  // Called before the host accesses a buffer. At gates StarPU does not know which tasks use the
  // buffer, so all tasks are waited for.
  void let_pass() const {
    if (gated_) wait_for_all();
  }
  // Waits until every list has ended, and until StarPU has released its tasks. StarPU's own wait is
  // not enough at gates: tasks that are held back have not been submitted to it yet.
  void wait_for_all() const {
    for (const auto& each : recent_) each->await(false);
    starpu_task_wait_for_all();
  }

  std::string find_not_finite(StepInput input) {
    wait_for_all();
    halted_ = false;
    workers_.forget_not_finite();
    if (const auto id = tensors_.not_finite())
      return "the parameters '" + blueprint.graph.parameter(*id).name + "', from the step before";
    const auto submission = submit(ListKind::first, std::move(input), /*checks_values=*/true);
    submission->wait(false);
    return submission->first_seen();
  }

  std::string record(std::shared_ptr<trace::Recorder> recorder) {
    recording_ = std::make_unique<Recording>(std::move(recorder), blueprint);
    return recording_->remark();
  }
  void end_record() {
    wait_for_all();
    recording_->close();
    recording_.reset();
  }
  void watch(TimesSink sink, Depth depth) {
    sink_ = std::move(sink);
    depth_ = depth;
  }
  StepResult wait(const Submission& submission, StepResult result) {
    if (sink_ && !submission.times.empty())
      sink_({blueprint, *submission.runs.front().list, submission.spans, submission.times});
    if (recording_) recording_->take(submission, result.finished);
    return result;
  }

  // A CPU is left for the thread that submits, so it may spin.
  bool has_spare_cpu() const { return spare_cpu_; }
  Dtype sample_dtype() const { return options_.numbers.samples; }

  Blueprint blueprint;
  std::chrono::nanoseconds handing_over{0};
  std::int64_t lists = 0;
  const TaskList& list(ListKind job) { return prepared(job).list; }
  std::size_t buffer_bytes() const { return buffers_.bytes(); }
  std::size_t workspace_bytes() const { return workers_.workspace_bytes(); }
  // A GPU's kernels run while its worker does something else: nothing is counted then.
  int counted_workers() const {
    for (const DeviceGroup* group : groups_of(blueprint.plan))
      if (group->kind != DeviceKind::cpu) return 0;
    return cpu_workers();
  }
  std::size_t graph_captures() const { return workers_.graph_captures(); }

 private:
  // Made when it is first asked for: most runs have no use for some.
  PreparedList& prepared(ListKind job) {
    const auto found = lists_.find(job);
    if (found != lists_.end()) return found->second;
    return lists_.emplace(job, prepare(blueprint, job, options_)).first->second;
  }

  // The entry of last_workers_ for the task's chunk; null for a task without a chunk.
  std::atomic<int>* last_worker_of(const Task& task) {
    for (const Action& action : task.actions)
      if (action.phase == Phase::load || runs_part(action.phase))
        return &last_workers_[action.chunk.value];
    return nullptr;
  }

  int cpu_workers() const {
    int workers = 1;
    for (const DeviceGroup* group : groups_of(blueprint.plan))
      if (group->kind == DeviceKind::cpu) workers = group->workers;
    return workers;
  }

  // For our scheduler: the worker by StarPU's number.
  FixedPlace fixed_place(const PreparedList& prepared, std::size_t task, std::int64_t step) const {
    FixedPlace place = prepared.places.at(task, step);
    if (place.worker >= 0) place.worker = ids_.workers[static_cast<std::size_t>(place.worker)];
    return place;
  }

  PreparedList::Handles gradients() {
    PreparedList::Handles handles;
    for (std::uint32_t b = 0; b < blueprint.buckets.size(); ++b)
      handles.push_back(
          buffers_.get(BufferKind::gradient, b, 0, blueprint.buckets[b].bytes).handle());
    return handles;
  }

  // --- handing lists to StarPU

  void make_runs(Submission& submission, PreparedList& prepared) {
    const BufferData* const data =
        gated_ ? prepared.data_of(buffers_, submission.number).data() : nullptr;
    const std::vector<Task>& tasks = prepared.list.tasks;
    const bool timed = !submission.times.empty();
    submission.runs = std::vector<TaskRun>(tasks.size());
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      TaskRun& run = submission.runs[t];
      run.executor = this;
      run.submission = &submission;
      run.list = &prepared.list;
      run.task = &tasks[t];
      run.predicted_us = prepared.predicted[t];
      run.ready = {.list = static_cast<std::int64_t>(submission.number),
                   .rank = prepared.ranks[t],
                   .order = static_cast<std::int64_t>(t),
                   .fixed = fixed_place(prepared, t, submission.step)};
      run.last_worker = last_worker_of(tasks[t]);
      const bool on_gpu = !tasks[t].on_host && ids_.gpu[tasks[t].group.value] >= 0;
      if (on_gpu) run.gpu = static_cast<int>(tasks[t].group.value);
      if (gated_) run.data = data + prepared.first_handle[t];
      if (timed) run.times = &submission.times[t];
    }
  }

  // At gates: tasks that wait for nothing are submitted to StarPU now, each other task when the
  // last task it waits for has ended, by the worker that ended it.
  void open_list(Submission& submission) {
    for (std::size_t t = 0; t < submission.runs.size(); ++t) {
      TaskRun& run = submission.runs[t];
      if (run.times) run.times->submit = TraceClock::now();
      if ((*submission.gates)[t].count_down()) start(run);
    }
  }

  // Submits all tasks with data handles, from which StarPU derives what each task waits for.
  void hand_over(Submission& submission, PreparedList& prepared) {
    const PreparedList::Handles& handles = prepared.handles_of(buffers_, submission.number);
    // StarPU's reduction adds to what a buffer holds; a step starts from nothing. Its workers' sums
    // keep their memory, so that captured graphs keep their addresses.
    if (trains(submission.job) && !adds(submission.job) && blueprint.by_redux())
      for (starpu_data_handle_t each : gradients()) starpu_data_deinitialize_submit(each);
    for (std::size_t t = 0; t < submission.runs.size(); ++t) {
      TaskRun& run = submission.runs[t];
      if (run.times) run.times->submit = TraceClock::now();
      // Only our scheduler knows of turns.
      const bool fixed = run.gpu >= 0 && run.ready.fixed.turn == 0;
      submit(run, std::span(handles).subspan(prepared.first_handle[t], run.task->accesses.size()),
             fixed ? ids_.gpu[static_cast<std::size_t>(run.gpu)] : -1);
    }
  }

  void submit(TaskRun& run, std::span<const starpu_data_handle_t> handles, int worker) {
    try {
      submit_task(run, codelets_.of(*run.task, run.gpu >= 0), handles, worker, &ended);
    } catch (...) {
      halted_ = true;  // tasks behind a gap in the order would go wrong
      run.submission->fail(std::current_exception());
      skip_turn(run.ready.fixed);
      handed_over(run);
      done(run);
      run.submission->task_finished();
    }
  }

  // Starts a task at gates that has nothing left to wait for.
  static void start(TaskRun& run) {
    if (!travels(*run.task)) return run.executor->submit(run, {}, -1);
    try {
      std::vector<std::byte*> pointers(run.task->accesses.size());
      for (std::size_t i = 0; i < pointers.size(); ++i) pointers[i] = run.data[i].host;
      run.executor->start_travel(run, pointers.data());
    } catch (...) {
      run.executor->halted_ = true;
      run.submission->fail(std::current_exception());
      arrived(run);
    }
  }

  static std::size_t place_of(const TaskRun& run) {
    return static_cast<std::size_t>(&run - run.submission->runs.data());
  }

  // A GPU was given the task's work: tasks of this GPU that wait for nothing else start.
  static void handed_over(const TaskRun& run) {
    if (run.submission->gates && run.gpu >= 0)
      run.submission->gates->open_handed_over(place_of(run), start);
  }

  // The task's work has ended: tasks that wait for nothing else start.
  static void done(const TaskRun& run) {
    Submission& submission = *run.submission;
    submission.task_done();
    if (submission.gates) submission.gates->open_ended(place_of(run), start);
  }

  // --- between ranks

  // Never waits. `data` of the task's accesses is read before this returns.
  void start_travel(const TaskRun& run, std::byte* const* data) {
    messages_->start(run, data, [this, &run](std::exception_ptr failure) {
      if (failure) {
        halted_ = true;
        run.submission->fail(std::move(failure));
      }
      arrived(run);
    });
  }

  static void arrived(const TaskRun& run) {
    if (run.times) run.times->end = TraceClock::now();
    if (!run.at_gates()) {
      starpu_task_end_dep_release(run.starpu);
      return;
    }
    try {
      run.executor->copies_.bring_to_gpu(run);
    } catch (...) {
      run.executor->halted_ = true;
      run.submission->fail(std::current_exception());
    }
    done(run);
    run.submission->task_finished();
  }

  // --- on a worker

  // A GPU's update sets a mark on the GPU if it saw a gradient that is not finite: asks for it.
  void look_at_gradient(const TaskRun& run) {
    const auto updates = [](const Action& action) { return action.phase == Phase::update; };
    if (!std::ranges::any_of(run.task->actions, updates)) return;
    if (!workers_.saw_not_finite(run.task->group)) return;
    halted_ = true;
    run.submission->fail(std::make_exception_ptr(NotFinite("the gradient is no longer a number")));
  }

  static void ended(void* argument) {
    const auto& run = *static_cast<TaskRun*>(argument);
    if (run.times) note_end(run);
    if (run.gpu >= 0) run.executor->look_at_gradient(run);
    if (!run.at_gates() || run.gpu >= 0) done(run);
    run.submission->task_finished();
  }

  // Starts the tasks that waited for a task at gates, when its function returns. A GPU has been
  // handed the task's work then.
  class Opens {
   public:
    explicit Opens(const TaskRun& run) : run_(run) {}
    ~Opens() {
      if (!run_.at_gates()) return;
      if (run_.gpu >= 0)
        handed_over(run_);
      else
        done(run_);
    }
    Opens(const Opens&) = delete;
    Opens& operator=(const Opens&) = delete;

   private:
    const TaskRun& run_;
  };

  // Counts the worker's time for as long as it lives.
  class Kernels {
   public:
    explicit Kernels(int worker) : worker_(worker) { worker_times().begins(worker_); }
    ~Kernels() { worker_times().ends(worker_); }
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;

   private:
    int worker_;
  };

  // A task's function must not throw into StarPU, which is C.
  template <void (Workers::*RUN)(const TaskRun&, void*[])>
  static void guarded(void* buffers[], void* argument) {
    const auto& run = *static_cast<TaskRun*>(argument);
    const int worker = starpu_worker_get_id();
    const Opens opens(run);  // after what is counted as the task's
    const Kernels counted(worker);
    const bool asks = run.times && run.times->depth != Depth::task;
    const std::chrono::nanoseconds cpu = asks ? thread_time() : std::chrono::nanoseconds{0};
    if (run.times) {
      run.times->worker = worker;
      run.times->start = run.times->end = TraceClock::now();
      run.times->acquire = run.times->start - run.times->taken;
    }
    Submission& submission = *run.submission;
    // Other ranks wait for its messages, even if this one has failed.
    if (travels(*run.task)) {
      std::vector<std::byte*> pointers(run.task->accesses.size());
      for (std::size_t i = 0; i < pointers.size(); ++i) pointers[i] = data_of(buffers[i]);
      run.executor->start_travel(run, pointers.data());
      return;
    }
    if (submission.failed) return;
    try {
      if (run.executor->halted_ && trains(submission.job))
        throw NotFinite("a step before has gone wrong");
      (run.executor->workers_.*RUN)(run, buffers);
    } catch (const NotFinite&) {
      run.executor->halted_ = true;
      submission.fail(std::current_exception());
    } catch (...) {
      run.submission->fail(std::current_exception());
    }
    if (run.times) run.times->end = TraceClock::now();
    if (asks) run.times->cpu = thread_time() - cpu;
  }

  ExecOptions options_;
  Codelets codelets_;
  Runtime runtime_;  // first to come, last to go of all that StarPU knows
  ReduxCodelets redux_;
  WorkerIds ids_;
  const Copies copies_{blueprint, gpu_device(ids_)};
  Workers workers_{blueprint, options_, runtime_, ids_, copies_};
  std::map<ListKind, PreparedList> lists_;
  std::vector<std::atomic<int>> last_workers_;  // by chunk: the worker that ran its latest task
  const bool gated_ = waits_at_gates(blueprint.plan);
  Buffers buffers_;
  Tensors tensors_{blueprint, buffers_, options_.masks};
  Gates gates_;
  std::deque<std::shared_ptr<Submission>> recent_;
  std::size_t steps_submitted_ = 0, lists_exchanged_ = 0;
  std::optional<RankMessages> messages_;  // none: this process is alone
  std::atomic<bool> halted_ = false;      // a step has gone wrong: no task moves parameters
  std::unique_ptr<Recording> recording_;
  TimesSink sink_;
  Depth depth_ = Depth::task;
  bool spare_cpu_ = runtime_.cpu_threads() < available_cpus();
};

Executor::Executor(const Graph& graph, const Plan& plan, ExecOptions options)
    : impl_(std::make_unique<Impl>(graph, plan, std::move(options))) {}
Executor::~Executor() = default;

const Graph& Executor::graph() const { return impl_->blueprint.graph; }
const Plan& Executor::plan() const { return impl_->blueprint.plan; }
const RankPlace& Executor::ranks() const { return impl_->blueprint.ranks; }
Dtype Executor::sample_dtype() const { return impl_->sample_dtype(); }
std::string Executor::find_not_finite(StepInput input) {
  return impl_->find_not_finite(std::move(input));
}
const OptimizerSettings& Executor::optimizer() const { return impl_->blueprint.optimizer; }
std::size_t Executor::tasks_per_step() const { return impl_->list(ListKind::train).tasks.size(); }
WorkerLoad Executor::load() const {
  const WorkerTimes::Totals totals = worker_times().totals();
  return {std::chrono::steady_clock::now(),
          totals.kernels,
          totals.runtime,
          impl_->handing_over,
          impl_->lists,
          impl_->counted_workers()};
}
std::size_t Executor::buffer_bytes() const { return impl_->buffer_bytes(); }
std::size_t Executor::workspace_bytes() const { return impl_->workspace_bytes(); }
std::size_t Executor::graph_captures() const { return impl_->graph_captures(); }

Ticket Executor::submit(ListKind job, StepInput input) {
  const auto begin = std::chrono::steady_clock::now();
  Ticket ticket;
  ticket.submission_ = impl_->submit(job, std::move(input));
  impl_->handing_over += std::chrono::steady_clock::now() - begin;
  ++impl_->lists;
  return ticket;
}

StepResult Executor::wait(const Ticket& ticket) {
  return impl_->wait(*ticket.submission_, ticket.submission_->wait(impl_->has_spare_cpu()));
}

void Executor::give_up(const std::string& why) noexcept { impl_->give_up(why); }

void Executor::await(const Ticket& ticket) const {
  ticket.submission_->await(impl_->has_spare_cpu());
}
bool Executor::has_spare_cpu() const { return impl_->has_spare_cpu(); }

std::string Executor::record(std::shared_ptr<trace::Recorder> recorder) {
  return impl_->record(std::move(recorder));
}
void Executor::end_record() { impl_->end_record(); }
void Executor::watch(std::function<void(const ListTimes&)> sink, Depth depth) {
  impl_->watch(std::move(sink), depth);
}
void Executor::watch_no_more() { impl_->watch({}, Depth::task); }

std::vector<float> Executor::read(BufferKind kind, ParameterId id, std::uint32_t second) const {
  return impl_->tensors().read(kind, id, second);
}
void Executor::write(BufferKind kind, ParameterId id, std::span<const float> values,
                     std::uint32_t second) {
  impl_->tensors().write(kind, id, second, values);
}
std::vector<float> Executor::state(StateId id) const { return impl_->tensors().state(id); }
void Executor::set_state(StateId id, std::span<const float> values) {
  impl_->tensors().set_state(id, values);
}

}  // namespace regatta
