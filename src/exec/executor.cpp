#include "exec/executor.h"

#include <starpu.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>

#include "backends/cpu/batch_norm.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/optimizer.h"
#include "base/error.h"
#include "exec/frame.h"
#include "exec/memory.h"
#include "exec/runtime.h"

namespace regatta {

// A task of a list on its way; lives as long as its submission.
struct TaskRun {
  Executor::Impl* executor = nullptr;
  Submission* submission = nullptr;
  const TaskList* list = nullptr;
  const Task* task = nullptr;
};

struct Submission {
  Job job = Job::train;
  StepInput input;
  std::vector<ChunkSpan> spans;
  StepResult result;
  std::vector<TaskRun> runs;
  std::atomic<std::size_t> unfinished = 0;  // tasks that have not run
  std::atomic<std::size_t> remaining = 0;   // tasks whose end has not been noted; waited on
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr error;

  // The first failure counts; tasks after it do nothing.
  void fail(std::exception_ptr cause) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(cause);
    failed = true;
  }
};

namespace {

// A buffer known to StarPU. Its memory is ours, so StarPU never frees or moves it.
class RegisteredBuffer {
 public:
  explicit RegisteredBuffer(std::size_t bytes) : memory_(bytes) {
    starpu_variable_data_register(&handle_, STARPU_MAIN_RAM,
                                  reinterpret_cast<std::uintptr_t>(memory_.data()), bytes);
  }
  ~RegisteredBuffer() { starpu_data_unregister(handle_); }
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;

  starpu_data_handle_t handle() const { return handle_; }
  std::size_t bytes() const { return memory_.bytes(); }

 private:
  HostMemory memory_;
  starpu_data_handle_t handle_{};
};

// Host access to a buffer for the length of a scope.
class HostView {
 public:
  HostView(const RegisteredBuffer& buffer, starpu_data_access_mode mode)
      : handle_(buffer.handle()) {
    starpu_data_acquire(handle_, mode);
    data_ = reinterpret_cast<std::byte*>(starpu_variable_get_local_ptr(handle_));
  }
  ~HostView() { starpu_data_release(handle_); }
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;
  float* floats(std::size_t offset) const { return reinterpret_cast<float*>(data_ + offset); }

 private:
  starpu_data_handle_t handle_;
  std::byte* data_;
};

starpu_data_access_mode starpu_mode(Mode mode) {
  switch (mode) {
    case Mode::read:
      return STARPU_R;
    case Mode::write:
      return STARPU_W;
    case Mode::read_write:
      return STARPU_RW;
    case Mode::reduce:
      return STARPU_REDUX;
  }
  throw Error("unknown access mode");
}

// Until costs are measured: so many microseconds per task and per FLOP, for StarPU's own
// model-based schedulers.
double assumed_microseconds(const Task& task) { return 5.0 + task.flops / 20e3; }

}  // namespace

class Executor::Impl {
 public:
  Impl(const Graph& graph, const Plan& plan, ExecOptions options)
      : blueprint(make_blueprint(graph, plan, options.sample_dtype, options.training)),
        options_(std::move(options)),
        runtime_({.cpu_workers = groups_of(plan).front()->workers, .scheduler = plan.scheduler}),
        backend_(blueprint.graph, groups_of(plan).front()->layout,
                 std::ranges::max(blueprint.chunks, {}, &Chunk::capacity).capacity,
                 options_.sample_dtype, options_.normalisation),
        workers_(STARPU_NMAXWORKERS) {
    describe_codelets();
    for (const Job job : {Job::prepare, Job::train, Job::evaluate}) {
      if (job == Job::train && !options_.training) continue;
      TaskList& list = lists_[job] = lower(blueprint, job);
      if (const auto found = faults(list); !found.empty())
        throw Error("internal: the task list is broken: " + found.front());
    }
  }

  // StarPU may still be letting go of finished tasks; the buffers go after it has.
  ~Impl() { starpu_task_wait_for_all(); }

  // --- submitting

  std::shared_ptr<Submission> submit(Job job, StepInput input) {
    const TaskList& list = lists_.at(job);
    auto submission = std::make_shared<Submission>();
    submission->job = job;
    submission->input = std::move(input);
    submission->spans = share_out(blueprint.chunks, submission->input.samples);
    const auto samples = static_cast<std::size_t>(submission->input.samples);
    submission->result.losses.resize(samples);
    submission->result.correct.resize(samples);
    if (job == Job::evaluate)
      submission->result.logits.resize(samples *
                                       static_cast<std::size_t>(blueprint.graph.classes()));
    submission->unfinished = submission->remaining = list.tasks.size();
    submission->runs.reserve(list.tasks.size());
    const std::size_t step = steps_submitted_++;
    if (job == Job::train && blueprint.plan.reduction == Reduction::redux) forget_gradients();
    for (const Task& task : list.tasks) {
      submission->runs.push_back({this, submission.get(), &list, &task});
      submit_task(submission->runs.back(), step);
    }
    // A worker still touches a submission just after its waiter was woken: the latest are kept.
    recent_.push_back(submission);
    if (recent_.size() > 2 * static_cast<std::size_t>(blueprint.plan.steps_in_flight) + 2)
      recent_.pop_front();
    return submission;
  }

  StepResult wait(const std::shared_ptr<Submission>& submission) {
    for (std::size_t left = submission->remaining; left != 0; left = submission->remaining)
      submission->remaining.wait(left);
    if (submission->error) std::rethrow_exception(submission->error);
    return std::move(submission->result);
  }

  // --- host access

  const RegisteredBuffer& buffer(BufferKind kind, std::uint32_t first, std::uint32_t second,
                                 std::size_t bytes, std::size_t copy = 0) {
    auto& copies = buffers_[{kind, first, second}];
    if (copies.size() <= copy) copies.resize(copy + 1);
    if (!copies[copy]) {
      copies[copy] = std::make_unique<RegisteredBuffer>(bytes);
      if (kind == BufferKind::gradient && blueprint.plan.reduction == Reduction::redux)
        starpu_data_set_reduction_methods(copies[copy]->handle(), &add_codelet_, &zero_codelet_);
    }
    return *copies[copy];
  }

  const RegisteredBuffer& of_parameter(BufferKind kind, ParameterId id) {
    const BucketId bucket = blueprint.bucket_of[id.value];
    return buffer(kind, bucket.value, 0, blueprint.buckets[bucket.value].bytes);
  }
  const RegisteredBuffer& of_state(StateId id) {
    const SegmentId segment = blueprint.segment_of[blueprint.graph.state(id).node.value];
    return buffer(BufferKind::state, segment.value, 0,
                  blueprint.segments[segment.value].state_bytes);
  }
  static std::vector<float> read(const RegisteredBuffer& from, std::size_t offset,
                                 std::int64_t count) {
    const HostView view(from, STARPU_R);
    return {view.floats(offset), view.floats(offset) + count};
  }
  static void write(const RegisteredBuffer& to, std::size_t offset, std::span<const float> values,
                    std::int64_t count) {
    if (values.size() != static_cast<std::size_t>(count)) throw Error("tensor of the wrong size");
    const HostView view(to, STARPU_RW);
    std::ranges::copy(values, view.floats(offset));
  }

  std::size_t buffer_bytes() const {
    std::size_t total = 0;
    for (const auto& [key, copies] : buffers_)
      for (const auto& copy : copies) total += copy ? copy->bytes() : 0;
    return total;
  }

  Blueprint blueprint;
  const TaskList& list(Job job) const { return lists_.at(job); }

 private:
  void submit_task(TaskRun& run, std::size_t step) {
    starpu_task* task = starpu_task_create();
    const std::vector<Access>& accesses = run.task->accesses;
    task->cl = &run_codelet_;
    task->cl_arg = &run;
    task->cl_arg_size = sizeof run;
    task->nbuffers = static_cast<int>(accesses.size());
    if (accesses.size() > STARPU_NMAXBUFS) {
      // StarPU frees both with the task.
      task->dyn_handles = static_cast<starpu_data_handle_t*>(
          std::malloc(accesses.size() * sizeof(starpu_data_handle_t)));
      task->dyn_modes = static_cast<starpu_data_access_mode*>(
          std::malloc(accesses.size() * sizeof(starpu_data_access_mode)));
    }
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const Buffer& what = run.list->buffers[accesses[i].buffer];
      const auto& found = buffer(what.kind, what.first, what.second, what.bytes,
                                 step % static_cast<std::size_t>(what.copies));
      STARPU_TASK_SET_HANDLE(task, found.handle(), static_cast<unsigned>(i));
      STARPU_TASK_SET_MODE(task, starpu_mode(accesses[i].mode), static_cast<unsigned>(i));
    }
    task->priority = run.task->priority;
    task->name = phase_name(run.task->actions.front().phase).data();
    task->callback_func = &Impl::finished;
    task->callback_arg = run.submission;
    if (const int code = starpu_task_submit(task); code != 0)
      throw Error(std::string("StarPU refused a task: ") + std::strerror(-code));
  }

  // StarPU's reduction adds to what a buffer holds; a step starts from nothing.
  void forget_gradients() {
    for (std::uint32_t b = 0; b < blueprint.buckets.size(); ++b)
      starpu_data_invalidate_submit(
          buffer(BufferKind::gradient, b, 0, blueprint.buckets[b].bytes).handle());
  }

  static void finished(void* argument) {
    auto* submission = static_cast<Submission*>(argument);
    if (submission->unfinished.fetch_sub(1) == 1)
      submission->result.finished = std::chrono::steady_clock::now();
    if (submission->remaining.fetch_sub(1) == 1) submission->remaining.notify_all();
  }

  // --- running, on a worker

  static void run_task(void* buffers[], void* argument) {
    const auto& run = *static_cast<TaskRun*>(argument);
    if (run.submission->failed) return;
    try {
      run.executor->carry_out(run, buffers);
    } catch (...) {
      run.submission->fail(std::current_exception());
    }
  }

  struct WorkerState {
    explicit WorkerState(cpu::Backend& backend, const Blueprint& blueprint)
        : kernels(backend), frame(blueprint) {
      cpu::prepare_worker_thread();
    }
    cpu::Worker kernels;
    Frame frame;
  };

  WorkerState& this_worker() {
    auto& state = workers_[static_cast<std::size_t>(starpu_worker_get_id_check())];
    if (!state) state = std::make_unique<WorkerState>(backend_, blueprint);
    return *state;
  }

  void carry_out(const TaskRun& run, void* buffers[]) {
    WorkerState& worker = this_worker();
    const Frame::Scope bound(worker.frame);
    for (std::size_t i = 0; i < run.task->accesses.size(); ++i)
      worker.frame.bind(run.list->buffers[run.task->accesses[i].buffer],
                        reinterpret_cast<std::byte*>(STARPU_VARIABLE_GET_PTR(buffers[i])));
    for (const Action& action : run.task->actions) act(action, *run.submission, worker);
  }

  void act(const Action& action, Submission& submission, WorkerState& worker) {
    const Frame& frame = worker.frame;
    const ChunkSpan span =
        submission.spans.empty() ? ChunkSpan{} : submission.spans[action.chunk.value];
    switch (action.phase) {
      case Phase::load:
        submission.input.load(span.first, span.count, frame.samples(),
                              frame.labels());
        break;
      case Phase::forward:
      case Phase::backward:
        run_part(action, submission, worker, span.count);
        break;
      case Phase::combine:
      case Phase::combine_gradient:
        combine(action, submission, frame);
        break;
      case Phase::deliver:
        deliver(submission, frame, span);
        break;
      case Phase::reduce:
        reduce(action.bucket, frame);
        break;
      case Phase::update:
        update(action.bucket, submission.input, frame);
        break;
      case Phase::pack:
        for (const NodeId id : blueprint.buckets[action.bucket.value].nodes) {
          const Node& node = blueprint.graph.node(id);
          std::array<const float*, 2> parameters{};
          for (std::size_t i = 0; i < node.parameters.size(); ++i)
            parameters[i] = frame.parameter(node.parameters[i]);
          worker.kernels.pack(node, parameters, frame.packed(id),
                              packed_bytes(blueprint.graph, node));
        }
        break;
    }
  }

  void run_part(const Action& action, const Submission& submission, WorkerState& worker,
                std::int64_t count) {
    const SegmentPlace& place = blueprint.segments[action.segment.value];
    const bool evaluating = submission.job == Job::evaluate;
    const Program& program = evaluating ? place.evaluate : place.train;
    const Part& part = action.phase == Phase::forward ? program.forward[action.part]
                                                      : program.backward[action.part];
    const Chunk& chunk = blueprint.chunks[action.chunk.value];
    const ArenaMap& arena = evaluating ? place.evaluate_arena[chunk.group.value]
                                       : place.train_arena[chunk.group.value];
    for (const Instruction& step : part) {
      Operands operands = worker.frame.operands(step, chunk, arena);
      operands.n = count;
      operands.pass = evaluating ? Pass::evaluate : Pass::train;
      operands.loss_scale = 1.0f / static_cast<float>(submission.input.samples);
      worker.kernels.run(step, operands);
    }
  }

  void combine(const Action& action, const Submission& submission, const Frame& frame) const {
    const Program& program = blueprint.segments[action.segment.value].train;
    const bool back = action.phase == Phase::combine_gradient;
    const std::size_t meeting =
        back ? program.meetings.size() - 1 - action.part : std::size_t{action.part};
    const Node& node = blueprint.graph.node(program.meetings[meeting]);
    const auto pixels = static_cast<double>(node.shape.height() * node.shape.width());
    std::vector<PartialSums> chunks;
    for (const Chunk& chunk : blueprint.chunks)
      chunks.push_back({frame.partials(node.id, chunk.id),
                        static_cast<double>(submission.spans[chunk.id.value].count) * pixels});
    if (back) {
      cpu::combine_gradients(node, chunks, frame.statistics(node.id));
    } else {
      std::array<float*, 3> states{};
      for (std::size_t i = 0; i < node.states.size(); ++i) states[i] = frame.state(node.states[i]);
      cpu::combine_statistics(node, chunks, frame.statistics(node.id), states);
    }
  }

  void deliver(Submission& submission, const Frame& frame, const ChunkSpan& span) const {
    const auto first = static_cast<std::size_t>(span.first);
    const auto count = static_cast<std::size_t>(span.count);
    const float* losses = frame.border(blueprint.graph.loss());
    for (std::size_t i = 0; i < count; ++i) {
      submission.result.losses[first + i] = losses[2 * i];
      submission.result.correct[first + i] = losses[2 * i + 1];
    }
    if (submission.job != Job::evaluate) return;
    const auto classes = static_cast<std::size_t>(blueprint.graph.classes());
    std::copy_n(frame.border(blueprint.graph.logits()), count * classes,
                submission.result.logits.begin() + static_cast<std::ptrdiff_t>(first * classes));
  }

  void reduce(BucketId bucket, const Frame& frame) const {
    std::vector<const float*> others;
    for (int lane = 1; lane < lanes_of(blueprint.plan); ++lane)
      others.push_back(frame.gradient(bucket, lane));
    cpu::reduce_slots(frame.gradient(bucket, 0), others,
                      blueprint.buckets[bucket.value].bytes / sizeof(float));
  }

  void update(BucketId bucket, const StepInput& input, const Frame& frame) const {
    const cpu::SgdStep step{static_cast<float>(input.learning_rate),
                            static_cast<float>(input.momentum),
                            static_cast<float>(input.weight_decay)};
    cpu::sgd_step(step, frame.gradient(bucket, 0), frame.momentum(bucket),
                  frame.parameters(bucket), blueprint.buckets[bucket.value].bytes / sizeof(float));
  }

  // --- codelets

  void describe_codelets() {
    starpu_perfmodel_init(&model_);
    model_.type = STARPU_PER_WORKER;
    model_.worker_cost_function = [](starpu_task* task, unsigned, unsigned) {
      return assumed_microseconds(*static_cast<TaskRun*>(task->cl_arg)->task);
    };
    model_.symbol = "regatta";

    starpu_codelet_init(&run_codelet_);
    run_codelet_.where = STARPU_CPU;
    run_codelet_.cpu_funcs[0] = &Impl::run_task;
    run_codelet_.nbuffers = STARPU_VARIABLE_NBUFFERS;
    run_codelet_.model = &model_;
    run_codelet_.name = "regatta";

    starpu_codelet_init(&zero_codelet_);
    zero_codelet_.cpu_funcs[0] = [](void* buffers[], void*) {
      std::memset(reinterpret_cast<void*>(STARPU_VARIABLE_GET_PTR(buffers[0])), 0,
                  STARPU_VARIABLE_GET_ELEMSIZE(buffers[0]));
    };
    zero_codelet_.nbuffers = 1;
    zero_codelet_.modes[0] = STARPU_W;
    zero_codelet_.name = "zero";

    starpu_codelet_init(&add_codelet_);
    add_codelet_.cpu_funcs[0] = [](void* buffers[], void*) {
      cpu::add_to(reinterpret_cast<float*>(STARPU_VARIABLE_GET_PTR(buffers[0])),
                  reinterpret_cast<const float*>(STARPU_VARIABLE_GET_PTR(buffers[1])),
                  STARPU_VARIABLE_GET_ELEMSIZE(buffers[0]) / sizeof(float));
    };
    add_codelet_.nbuffers = 2;
    add_codelet_.modes[0] =
        static_cast<starpu_data_access_mode>(int(STARPU_RW) | int(STARPU_COMMUTE));
    add_codelet_.modes[1] = STARPU_R;
    add_codelet_.name = "add";
  }

  ExecOptions options_;
  Runtime runtime_;  // first to come, last to go of all that StarPU knows
  starpu_perfmodel model_{};
  starpu_codelet run_codelet_{}, zero_codelet_{}, add_codelet_{};
  cpu::Backend backend_;
  std::vector<std::unique_ptr<WorkerState>> workers_;  // by StarPU worker
  std::map<Job, TaskList> lists_;
  std::map<std::tuple<BufferKind, std::uint32_t, std::uint32_t>,
           std::vector<std::unique_ptr<RegisteredBuffer>>>
      buffers_;
  std::deque<std::shared_ptr<Submission>> recent_;
  std::size_t steps_submitted_ = 0;
};

Executor::Executor(const Graph& graph, const Plan& plan, ExecOptions options)
    : impl_(std::make_unique<Impl>(graph, plan, std::move(options))) {}
Executor::~Executor() = default;

const Graph& Executor::graph() const { return impl_->blueprint.graph; }
const Plan& Executor::plan() const { return impl_->blueprint.plan; }
std::size_t Executor::tasks_per_step() const { return impl_->list(Job::train).tasks.size(); }
std::size_t Executor::buffer_bytes() const { return impl_->buffer_bytes(); }

Ticket Executor::submit(Job job, StepInput input) {
  Ticket ticket;
  ticket.submission_ = impl_->submit(job, std::move(input));
  return ticket;
}

StepResult Executor::wait(Ticket ticket) { return impl_->wait(ticket.submission_); }

std::vector<float> Executor::parameter(ParameterId id) const {
  return Impl::read(impl_->of_parameter(BufferKind::parameters, id),
                    impl_->blueprint.parameter_offset[id.value],
                    graph().parameter(id).shape.elements());
}
std::vector<float> Executor::momentum(ParameterId id) const {
  return Impl::read(impl_->of_parameter(BufferKind::momentum, id),
                    impl_->blueprint.parameter_offset[id.value],
                    graph().parameter(id).shape.elements());
}
std::vector<float> Executor::gradient(ParameterId id) const {
  return Impl::read(impl_->of_parameter(BufferKind::gradient, id),
                    impl_->blueprint.parameter_offset[id.value],
                    graph().parameter(id).shape.elements());
}
std::vector<float> Executor::state(StateId id) const {
  return Impl::read(impl_->of_state(id), impl_->blueprint.state_offset[id.value],
                    graph().state(id).shape.elements());
}
void Executor::set_parameter(ParameterId id, std::span<const float> values) {
  Impl::write(impl_->of_parameter(BufferKind::parameters, id),
              impl_->blueprint.parameter_offset[id.value], values,
              graph().parameter(id).shape.elements());
}
void Executor::set_momentum(ParameterId id, std::span<const float> values) {
  Impl::write(impl_->of_parameter(BufferKind::momentum, id),
              impl_->blueprint.parameter_offset[id.value], values,
              graph().parameter(id).shape.elements());
}
void Executor::set_state(StateId id, std::span<const float> values) {
  Impl::write(impl_->of_state(id), impl_->blueprint.state_offset[id.value], values,
              graph().state(id).shape.elements());
}

}  // namespace regatta
