#include "exec/executor.h"

#include <starpu.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>

#include "backends/cpu/optimizer.h"
#include "base/error.h"
#include "exec/buffers.h"
#include "exec/codelets.h"
#include "exec/communicator.h"
#include "exec/cpu_device.h"
#include "exec/cuda_runner.h"
#include "exec/frame.h"
#include "exec/gates.h"
#include "exec/interpreter.h"
#include "exec/null_device.h"
#include "exec/observe.h"
#include "exec/prepared_list.h"
#include "exec/redux.h"
#include "exec/runtime.h"
#include "exec/scheduler.h"
#include "exec/submission.h"
#include "exec/submit_task.h"
#include "exec/travels.h"
#include "exec/worker_ids.h"
#include "exec/worker_times.h"
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

std::byte* pointer_of(void* buffer) {
  return reinterpret_cast<std::byte*>(STARPU_VARIABLE_GET_PTR(buffer));
}

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
        backend_(options_.null_kernels ? nullptr : make_backend()),
        workers_(STARPU_NMAXWORKERS),
        last_workers_(blueprint.chunks.size()),
        masks_(bucket_masks(blueprint, options_.masks)),
        buffers_(blueprint, ids_.memory_nodes, !gated_, options_.training) {
    for (std::atomic<int>& worker : last_workers_) worker = -1;
    const std::vector<double> slowness = slowness_of(plan);
    for (std::size_t w = 0; w < slowness.size(); ++w)
      workers_[static_cast<std::size_t>(ids_.workers[w])].slowness = slowness[w];
    codelets_.describe(&guarded<&Impl::run_on_cpu>, &guarded<&Impl::run_on_gpu>);
    if (plan.reduction == Reduction::redux) buffers_.set_reduction(redux_.add(), redux_.zero());
    if (blueprint.ranks.several()) {
      const RankOptions& ranks = options_.ranks;
      if (blueprint.ranks.update == NodeUpdate::mpi)
        ranks.transport->open_channels(static_cast<int>(blueprint.buckets.size()));
      travels_.emplace(blueprint);
      communicator_ = std::make_unique<Communicator>(ranks.transport, ranks.names,
                                                     most_messages(blueprint.ranks),
                                                     travels_->numbers(), spare_cpu_);
    }
    // An order that cannot be followed is to be told before anything waits for it.
    if (options_.training && plan.placement == Placement::fixed) prepared(ListKind::train);
  }

  // StarPU may still be letting go of finished tasks; what they use goes after it has.
  ~Impl() {
    // Tasks that wait for messages would never end, here and on the other ranks.
    const bool undone =
        std::ranges::any_of(recent_, [](const auto& each) { return each->remaining > 0; });
    if (communicator_ && (undone || std::uncaught_exceptions() > 0))
      communicator_->give_up("it ended before its work was done");
    wait_for_all();
  }

  void give_up(const std::string& why) noexcept {
    if (communicator_) communicator_->give_up(why);
  }

  std::shared_ptr<Submission> submit(ListKind job, StepInput input, bool checks_values = false) {
    PreparedList& prepared = this->prepared(job);
    const TaskList& list = prepared.list;
    auto submission = std::make_shared<Submission>();
    submission->job = job;
    submission->checks_values = checks_values;
    submission->seed = options_.seed;
    submission->input = std::move(input);
    if (takes_step(job)) submission->numbers = numbers_of(submission->input);
    const bool in_groups = trains(job) && submission->input.keeps_groups;
    submission->batch_spans =
        share_out_batch(blueprint, submission->input.samples,
                        in_groups ? std::max<std::int64_t>(1, blueprint.group_samples) : 1);
    submission->spans = spans_here(submission->batch_spans);
    submission->result.wishes = submission->input.wishes;
    if (job != ListKind::prepare) submission->exchanged_as = lists_exchanged_++;
    const auto samples = static_cast<std::size_t>(submission->input.samples);
    submission->result.losses.resize(samples);
    submission->result.correct.resize(samples);
    if (job == ListKind::evaluate) {
      submission->result.labels.resize(samples);
      submission->result.logits.resize(samples *
                                       static_cast<std::size_t>(blueprint.graph.classes()));
    }
    submission->undone = submission->remaining = list.tasks.size();
    const std::size_t step = submission->number = steps_submitted_++;
    submission->step = prepared.submitted++;
    if (sink_) {
      submission->times.resize(list.tasks.size());
      for (TaskTimes& times : submission->times) times.depth = depth_;
    }
    if (recording_) recording_->begin(*submission, list);
    make_runs(*submission, prepared);
    if (gated_) submission->gates = gates_.follow(list, step, submission->runs);
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

  const PlanBuffer& of_parameter(BufferKind kind, ParameterId id, std::uint32_t second) {
    let_pass();
    const BucketId bucket = blueprint.bucket_of[id.value];
    return buffers_.get(kind, bucket.value, second, blueprint.buckets[bucket.value].bytes);
  }
  const PlanBuffer& of_state(StateId id) {
    let_pass();
    const SegmentId segment = blueprint.segment_of[blueprint.graph.state(id).node.value];
    return buffers_.get(BufferKind::state, segment.value, 0,
                        blueprint.segments[segment.value].state_bytes);
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
  static std::vector<float> read(const PlanBuffer& from, std::size_t offset, std::int64_t count) {
    const HostView view(from, {offset, static_cast<std::size_t>(count) * sizeof(float)},
                        /*writes=*/false);
    return {view.floats(), view.floats() + count};
  }
  static void write(const PlanBuffer& to, std::size_t offset, std::span<const float> values,
                    std::int64_t count) {
    if (values.size() != static_cast<std::size_t>(count)) throw Error("tensor of the wrong size");
    HostView view(to, {offset, values.size_bytes()}, /*writes=*/true);
    std::ranges::copy(values, view.floats());
    view.bring_to_device();
  }

  std::string find_not_finite(StepInput input) {
    wait_for_all();
    halted_ = false;
    for (WorkerState& worker : workers_)
      if (worker.cuda) worker.cuda->forget_not_finite();
    for (std::uint32_t i = 0; i < blueprint.graph.parameters().size(); ++i) {
      const Parameter& parameter = blueprint.graph.parameters()[i];
      const std::vector<float> values =
          read(of_parameter(BufferKind::parameters, ParameterId{i}, 0),
               blueprint.parameter_offset[i], parameter.shape.elements());
      if (!cpu::all_finite(values.data(), values.size()))
        return "the parameters '" + parameter.name + "', from the step before";
    }
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
  const ParameterMasks& parameter_masks() const { return options_.masks; }

  Blueprint blueprint;
  std::chrono::nanoseconds handing_over{0};
  std::int64_t lists = 0;
  const TaskList& list(ListKind job) { return prepared(job).list; }
  std::size_t buffer_bytes() const { return buffers_.bytes(); }
  // A GPU's kernels run while its worker does something else: nothing is counted then.
  int counted_workers() const {
    for (const DeviceGroup* group : groups_of(blueprint.plan))
      if (group->kind != DeviceKind::cpu) return 0;
    return cpu_workers();
  }
  std::size_t graph_captures() const {
    std::size_t total = 0;
    for (const WorkerState& worker : workers_) total += worker.cuda ? worker.cuda->captures() : 0;
    return total;
  }

 private:
  // Of this rank's chunks.
  std::vector<ChunkSpan> spans_here(const std::vector<ChunkSpan>& batch) const {
    if (!blueprint.ranks.several()) return batch;
    const auto first = batch.begin() + static_cast<std::ptrdiff_t>(blueprint.ranks.own().first);
    return {first, first + static_cast<std::ptrdiff_t>(blueprint.ranks.own().count)};
  }

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

  // What a StarPU worker keeps from task to task; made on its own thread.
  struct WorkerState {
    std::unique_ptr<Device> cpu;
    std::unique_ptr<Frame> frame;
    std::unique_ptr<CudaRunner> cuda;
    double slowness = 1;
  };

  std::unique_ptr<cpu::Backend> make_backend() const {
    Layout layout = cpu::preferred_layout();
    // In a plan without a CPU group, CPU workers only load and update: the precision of values does
    // not concern them.
    Precision precision = Precision::fp32;
    for (const DeviceGroup* group : groups_of(blueprint.plan)) {
      if (group->kind != DeviceKind::cpu) continue;
      layout = group->layout;
      precision = options_.numbers.precision;
    }
    // Sized for the largest chunk of any rank, so that other sizes follow its choice of formats.
    std::int64_t largest = std::ranges::max(blueprint.chunks, {}, &Chunk::capacity).capacity;
    for (const std::int64_t capacity : blueprint.ranks.chunks)
      largest = std::max(largest, capacity);
    return std::make_unique<cpu::Backend>(blueprint.graph, layout, largest,
                                          options_.numbers.samples, options_.normalisation,
                                          precision);
  }

  // On the worker's thread.
  std::unique_ptr<Device> make_cpu_device() {
    if (options_.null_kernels) return std::make_unique<NullDevice>(blueprint.graph.loss());
    return std::make_unique<CpuDevice>(*backend_, runtime_.team());
  }

  std::vector<const std::uint8_t*> mask_pointers() const {
    std::vector<const std::uint8_t*> pointers;
    for (const auto& mask : masks_) pointers.push_back(mask.empty() ? nullptr : mask.data());
    return pointers;
  }

  // For our scheduler: the worker by StarPU's number.
  FixedPlace fixed_place(const PreparedList& prepared, std::size_t task, std::int64_t step) const {
    FixedPlace place = prepared.places.at(task, step);
    if (place.worker >= 0) place.worker = ids_.workers[static_cast<std::size_t>(place.worker)];
    return place;
  }

  UpdateNumbers numbers_of(const StepInput& input) const {
    const OptimizerSettings& optimizer = blueprint.optimizer;
    const bool adam =
        optimizer.kind == OptimizerKind::adam || optimizer.kind == OptimizerKind::adamw;
    return update_numbers(optimizer, input.learning_rate.value_or(optimizer.learning_rate),
                          input.momentum.value_or(adam ? optimizer.beta1 : optimizer.momentum),
                          input.update);
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
      if ((*submission.gates)[t].arrives()) start(run);
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

  // --- buffers that main memory and a GPU have copies of, at gates

  // A task of a CPU worker, or messages, have written main memory's copies.
  void bring_to_gpu(const TaskRun& run) const {
    const std::vector<cuda::Copy> copies = copies_of(run, /*to_gpu=*/true);
    if (!copies.empty()) copy_on_device(gpu_device_, copies);
  }

  std::vector<cuda::Copy> copies_of(const TaskRun& run, bool to_gpu) const {
    std::vector<cuda::Copy> copies;
    for_each_written(run, [&](const BufferData& data, ByteRange range) {
      std::byte* const host = data.host + range.from;
      std::byte* const device = data.device + range.from;
      copies.push_back({to_gpu ? device : host, to_gpu ? host : device, range.bytes});
      if (run.submission->recorded) recording_->copied(to_gpu, range.bytes);
    });
    return copies;
  }

  // What a task writes of buffers that have two copies.
  template <class Visit>
  void for_each_written(const TaskRun& run, const Visit& visit) const {
    if (gpu_device_ < 0) return;
    for (std::size_t i = 0; i < run.task->accesses.size(); ++i) {
      const BufferData& data = run.data[i];
      const Access& access = run.task->accesses[i];
      if (!data.host || !data.device || !writes(access.mode)) continue;
      if (run.list->buffers[access.buffer].kind != BufferKind::samples) {
        visit(data, {access.from, bytes_of(*run.list, access)});
        continue;
      }
      const Action& load = run.task->actions.front();
      const Chunk& chunk = blueprint.chunks[load.chunk.value];
      const ChunkSpan live{0, run.submission->spans[chunk.id.value].count};
      const ChunkSpan piece = piece_of(blueprint, chunk, load.part, live);
      const auto first = static_cast<std::size_t>(piece.first);
      const auto count = static_cast<std::size_t>(piece.count);
      if (count == 0) continue;
      visit(data, {first * blueprint.sample_bytes, count * blueprint.sample_bytes});
      visit(data, {blueprint.targets_offset + first * sizeof(Target), count * sizeof(Target)});
    }
  }

  // --- between ranks

  // Never waits. `data` of the task's accesses is read before this returns.
  void start_travel(const TaskRun& run, std::byte* const* data) {
    if (run.times) run.times->start = run.times->taken = TraceClock::now();
    Travels::Prepared prepared = travels_->prepare(*run.task, *run.submission, data);
    prepared.travel.done = [this, &run,
                            finish = std::move(prepared.finish)](std::exception_ptr failure) {
      if (failure) {
        halted_ = true;
        run.submission->fail(failure);
      } else if (finish) {
        finish();
      }
      arrived(run);
    };
    communicator_->start(std::move(prepared.travel));
  }

  static void arrived(const TaskRun& run) {
    if (run.times) run.times->end = TraceClock::now();
    if (!run.at_gates()) {
      starpu_task_end_dep_release(run.starpu);
      return;
    }
    try {
      run.executor->bring_to_gpu(run);
    } catch (...) {
      run.executor->halted_ = true;
      run.submission->fail(std::current_exception());
    }
    done(run);
    run.submission->task_finished();
  }

  // --- on a worker

  // A GPU's update has noted a gradient that is not finite, but nobody on the host has seen it.
  void look_at_gradient(const TaskRun& run) {
    const auto updates = [](const Action& action) { return action.phase == Phase::update; };
    if (!std::ranges::any_of(run.task->actions, updates)) return;
    const auto gpu = static_cast<std::size_t>(ids_.gpu[run.task->group.value]);
    if (!workers_[gpu].cuda || !workers_[gpu].cuda->saw_not_finite()) return;
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

  WorkerState& this_worker() {
    return workers_[static_cast<std::size_t>(starpu_worker_get_id_check())];
  }

  void run_on_cpu(const TaskRun& run, void* buffers[]) {
    WorkerState& worker = this_worker();
    if (!worker.frame) {
      worker.frame = std::make_unique<Frame>(blueprint, mask_pointers());
      runtime_.settle_worker();
      worker.cpu = make_cpu_device();
    }
    const auto begin = TraceClock::now();
    const Frame::Scope bound(*worker.frame);
    for (std::size_t i = 0; i < run.task->accesses.size(); ++i)
      worker.frame->bind(run.list->buffers[run.task->accesses[i].buffer],
                         run.at_gates() ? run.data[i].host : pointer_of(buffers[i]));
    carry_out(blueprint, *run.task, *run.submission, *worker.frame, *worker.cpu, run.times);
    if (run.at_gates()) bring_to_gpu(run);
    if (options_.null_kernels) wait_until(begin + options_.null_kernels(*run.task));
    if (worker.slowness > 1) wait_until(begin + (TraceClock::now() - begin) * worker.slowness);
  }

  // Without giving the core away: a slow core is not free for others either.
  static void wait_until(auto end) {
    while (TraceClock::now() < end) __builtin_ia32_pause();
  }

  CudaRunner& this_gpu() {
    WorkerState& worker = this_worker();
    if (!worker.cuda) {
      const int id = starpu_worker_get_id();
      const auto group = std::ranges::find(ids_.gpu, id) - ids_.gpu.begin();
      worker.cuda =
          make_cuda_runner(blueprint, GroupId{static_cast<std::uint32_t>(group)}, options_);
    }
    return *worker.cuda;
  }

  void run_on_gpu(const TaskRun& run, void* buffers[]) {
    std::vector<std::byte*> pointers(run.task->accesses.size());
    for (std::size_t i = 0; i < pointers.size(); ++i)
      pointers[i] = run.at_gates() ? run.data[i].device : pointer_of(buffers[i]);
    std::vector<cuda::Copy> copies;
    if (run.at_gates()) copies = copies_of(run, /*to_gpu=*/false);
    runtime_.settle_gpu_worker();
    const LaunchesOf marked(run);
    this_gpu().run(run, pointers, copies);
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
  template <void (Impl::*RUN)(const TaskRun&, void*[])>
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
    // Other ranks wait for it, whatever happened here.
    if (travels(*run.task)) {
      std::vector<std::byte*> pointers(run.task->accesses.size());
      for (std::size_t i = 0; i < pointers.size(); ++i) pointers[i] = pointer_of(buffers[i]);
      run.executor->start_travel(run, pointers.data());
      return;
    }
    if (submission.failed) return;
    try {
      if (run.executor->halted_ && trains(submission.job))
        throw NotFinite("a step before has gone wrong");
      (run.executor->*RUN)(run, buffers);
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
  std::unique_ptr<cpu::Backend> backend_;
  std::vector<WorkerState> workers_;  // by StarPU worker
  std::map<ListKind, PreparedList> lists_;
  std::vector<std::atomic<int>> last_workers_;  // by chunk: the worker that ran its latest task
  const std::vector<std::vector<std::uint8_t>> masks_;  // by bucket
  const bool gated_ = waits_at_gates(blueprint.plan);
  Buffers buffers_;
  Gates gates_;
  std::deque<std::shared_ptr<Submission>> recent_;
  std::size_t steps_submitted_ = 0, lists_exchanged_ = 0;
  std::optional<Travels> travels_;  // of several ranks
  std::unique_ptr<Communicator> communicator_;
  std::atomic<bool> halted_ = false;  // a step has gone wrong: nobody moves parameters
  std::unique_ptr<Recording> recording_;
  // CUDA's number of the plan's GPU; -1: none.
  const int gpu_device_ = gpu_device(ids_);
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
  std::vector<float> values =
      Impl::read(impl_->of_parameter(kind, id, second), impl_->blueprint.parameter_offset[id.value],
                 graph().parameter(id).shape.elements());
  // Only updates look at masks, so a gradient is whole in memory.
  if (kind == BufferKind::gradient) zero_masked(impl_->parameter_masks(), id, values);
  return values;
}
void Executor::write(BufferKind kind, ParameterId id, std::span<const float> values,
                     std::uint32_t second) {
  std::vector<float> masked(values.begin(), values.end());
  zero_masked(impl_->parameter_masks(), id, masked);
  Impl::write(impl_->of_parameter(kind, id, second), impl_->blueprint.parameter_offset[id.value],
              masked, graph().parameter(id).shape.elements());
}
std::vector<float> Executor::state(StateId id) const {
  return Impl::read(impl_->of_state(id), impl_->blueprint.state_offset[id.value],
                    graph().state(id).shape.elements());
}
void Executor::set_state(StateId id, std::span<const float> values) {
  Impl::write(impl_->of_state(id), impl_->blueprint.state_offset[id.value], values,
              graph().state(id).shape.elements());
}

}  // namespace regatta
