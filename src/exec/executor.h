// exec/: carries a task list out on StarPU. The only room that knows StarPU.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/operands.h"
#include "tasks/task_list.h"

namespace regatta {

// What a submitted list needs from outside.
struct StepInput {
  std::int64_t samples = 0;  // live ones: at most the batch
  // Fills samples [first, first + count) of the batch, as stored, and their labels. Called by
  // workers, several at a time.
  std::function<void(std::int64_t first, std::int64_t count, std::byte* samples,
                     std::int32_t* labels)>
      load;
  double learning_rate = 0, momentum = 0, weight_decay = 0;
};

struct StepResult {
  std::vector<float> losses;    // per sample
  std::vector<float> correct;   // per sample, 1 or 0
  std::vector<float> logits;    // evaluation only: samples x classes
  std::chrono::steady_clock::time_point finished;
};

struct ExecOptions {
  Dtype sample_dtype = Dtype::u8;
  Normalisation normalisation;
  bool training = true;
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
  std::size_t tasks_per_step() const;
  std::size_t buffer_bytes() const;  // allocated so far

  // Never waits. At most plan.steps_in_flight lists may be on their way.
  Ticket submit(Job job, StepInput input);
  // Throws what a task threw.
  StepResult wait(Ticket ticket);

  // Tensors by name, between steps (all tickets waited for).
  std::vector<float> parameter(ParameterId id) const;
  std::vector<float> momentum(ParameterId id) const;
  std::vector<float> gradient(ParameterId id) const;  // of the last step
  std::vector<float> state(StateId id) const;
  void set_parameter(ParameterId id, std::span<const float> values);
  void set_momentum(ParameterId id, std::span<const float> values);
  void set_state(StateId id, std::span<const float> values);

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta
