// exec/: carries a task list out on StarPU. The only room that knows StarPU.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/operands.h"
#include "base/error.h"
#include "base/optimizer.h"
#include "base/target.h"
#include "exec/bucket_masks.h"
#include "tasks/task_list.h"
#include "transport/transport.h"

namespace regatta {

namespace trace {
class Recorder;
}
class Profile;
struct ListTimes;
enum class Depth;

// What a submitted list needs from outside. With several ranks, samples are counted over the whole
// batch, and load is called for those of this rank.
struct StepInput {
  std::int64_t recorded_as = 0;  // its step in the record of a run, counted from 1; 0: none
  std::int64_t samples = 0;      // live ones: at most the batch
  // Samples of all micro-batches of the step, if there are several: gradients are divided by it.
  std::int64_t step_samples = 0;
  // Fills samples [first, first + count) of the batch, as stored, and their targets. Called by
  // workers, several at a time.
  std::function<void(std::int64_t first, std::int64_t count, std::byte* samples, Target* targets)>
      load;
  // Told by the worker that has loaded samples of a GPU's chunk, at gates, how long their way to
  // the GPU's memory took. May be empty.
  std::function<void(std::chrono::nanoseconds)> sent = {};
  // Chunks get whole groups of samples where statistics are those of groups. False: samples are
  // shared out evenly, to measure small chunks.
  bool keeps_groups = true;
  // For lists that take a step. The optimizer's other settings are in ExecOptions.
  std::optional<double> learning_rate = {};  // default: the optimizer's
  std::optional<double> momentum = {};       // default: the optimizer's; Adam's beta1
  std::int64_t update = 1;                   // which step this is, counted from 1
  std::uint64_t step = 0;    // micro-batches done before this one: dropout draws by it
  std::uint32_t wishes = 0;  // of this rank: told to all, see StepResult
  // Seconds that this rank computed in a recent step: told to all. 0: not known.
  float computed_s = 0;

  std::int64_t samples_of_step() const { return step_samples > 0 ? step_samples : samples; }
};

struct StepResult {
  std::vector<float> losses;   // per sample
  std::vector<float> correct;  // per sample, 1 or 0
  std::vector<float> labels;   // evaluation only: as loaded; complete on the first rank
  std::vector<float> logits;   // evaluation only: samples x classes; complete on the first rank
  // Bits that any rank set in its input: what ranks must agree on travels with the results.
  std::uint32_t wishes = 0;
  std::vector<double> computed_s;  // with several ranks, by rank: as told in their inputs
  std::chrono::steady_clock::time_point finished;
};

// How a process takes part in a run of several; alone by default.
struct RankOptions {
  RankPlace place;
  std::shared_ptr<Transport> transport = nullptr;
  std::vector<std::string> names = {};  // of the ranks, for messages
};

struct ExecOptions {
  Numbers numbers;
  Normalisation normalisation;
  bool training = true;
  std::uint64_t seed = 1;  // of the recipe: dropout draws by it
  // What schedulers reckon with; without a profile, a guess. `data` as the recipe writes it.
  std::shared_ptr<const Profile> profile = nullptr;
  std::string data = {};
  // Masked parameters are zero: what is written from outside loses them, and no step moves them.
  ParameterMasks masks = {};
  // To test and time the runtime by itself: kernels of CPU workers compute nothing, and each task
  // holds its worker for as long as this says, which schedulers also reckon with. Loading still
  // calls StepInput::load. None: kernels compute.
  std::function<Seconds(const Task&)> null_kernels = {};
  RankOptions ranks = {};
};

// Another rank failed, fell silent or ended: this one cannot go on. The failing one says why.
class RankFailed : public Error {
 public:
  using Error::Error;
};
// It said nothing for so long that it must be dead.
class RankSilent : public RankFailed {
 public:
  using RankFailed::RankFailed;
};

// A loss or a gradient is infinite or not a number. From then on no list moves parameters, not even
// one that was submitted before: they stay as they were.
class NotFinite : public Error {
 public:
  using Error::Error;
};

// What workers have done since the executor was made; the difference of two of these tells of the
// time between.
struct WorkerLoad {
  std::chrono::steady_clock::time_point when;
  std::chrono::nanoseconds kernels{0};  // of all workers together
  // Around kernels, known under `--scheduler regatta`: from a task's being chosen to its start, and
  // from its end, with submitting the tasks that waited for it, to the worker's asking for more.
  std::chrono::nanoseconds runtime{0};
  // By the thread that submits, of `lists` lists.
  std::chrono::nanoseconds handing_over{0};
  std::int64_t lists = 0;
  int workers = 0;  // 0: nothing is known, because kernels run on GPUs
};

struct Submission;  // one list on its way

class Ticket {
 public:
  Ticket() = default;
  explicit operator bool() const { return submission_ != nullptr; }

 private:
  friend class Executor;
  std::shared_ptr<Submission> submission_;
};

// Owns the workers and every buffer of a plan. Used from one thread.
class Executor {
 public:
  Executor(const Graph& graph, const Plan& plan, ExecOptions options);
  ~Executor();

  const Graph& graph() const;
  const Plan& plan() const;
  const OptimizerSettings& optimizer() const;
  Dtype sample_dtype() const;      // as samples are to be loaded
  const RankPlace& ranks() const;  // where this process stands among those of the run
  std::size_t tasks_per_step() const;
  std::size_t buffer_bytes() const;     // allocated so far
  std::size_t workspace_bytes() const;  // by kernels of CPU workers, so far
  WorkerLoad load() const;
  std::size_t graph_captures() const;  // CUDA graphs made so far; stands still after warm-up

  // Never waits. At most plan.steps_in_flight lists may be on their way.
  Ticket submit(ListKind job, StepInput input);
  // Throws what a task threw.
  StepResult wait(const Ticket& ticket);
  // Tells all other ranks, which then fail with RankFailed; nothing without them.
  void give_up(const std::string& why) noexcept;
  // Comes back when the list is done, without its result.
  void await(const Ticket& ticket) const;
  // A CPU is left for the thread that submits.
  bool has_spare_cpu() const;

  // Where something that is not finite first appears in training on this input: "the forward of
  // conv 'conv1'". Runs the list again without its step, looking at every value, and lets later
  // lists move parameters again. All tickets must have been waited for.
  std::string find_not_finite(StepInput input);
  // From now on, lists that the recorder wants are recorded. Given once. Says in a line what cannot
  // be recorded here though it was asked for, or nothing.
  std::string record(std::shared_ptr<trace::Recorder> recorder);
  // With nothing on its way: the record is complete.
  void end_record();
  // From now on `sink` is told what the tasks of each list took, when it is waited for; apart from
  // any record.
  void watch(std::function<void(const ListTimes&)> sink, Depth depth);
  void watch_no_more();

  // Tensors by name, between steps (all tickets waited for).
  std::vector<float> parameter(ParameterId id) const { return read(BufferKind::parameters, id); }
  // What the optimizer remembers: see keeps_moment().
  std::vector<float> moment(ParameterId id, int index) const {
    return read(BufferKind::moment, id, static_cast<std::uint32_t>(index));
  }
  std::vector<float> average(ParameterId id) const { return read(BufferKind::average, id); }
  // The gradient of the last step; zero where the parameter is masked.
  std::vector<float> gradient(ParameterId id) const { return read(BufferKind::gradient, id); }
  std::vector<float> state(StateId id) const;
  void set_parameter(ParameterId id, std::span<const float> values) {
    write(BufferKind::parameters, id, values);
  }
  void set_moment(ParameterId id, int index, std::span<const float> values) {
    write(BufferKind::moment, id, values, static_cast<std::uint32_t>(index));
  }
  void set_average(ParameterId id, std::span<const float> values) {
    write(BufferKind::average, id, values);
  }
  void set_state(StateId id, std::span<const float> values);

  class Impl;

 private:
  std::vector<float> read(BufferKind kind, ParameterId id, std::uint32_t second = 0) const;
  void write(BufferKind kind, ParameterId id, std::span<const float> values,
             std::uint32_t second = 0);

  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta
