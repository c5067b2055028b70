// What all ranks of one kind have in common: their tasks of a step, what these wait for, and what
// they cost. Made once, however many ranks there are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tasks/costs.h"
#include "tasks/placement.h"
#include "tasks/spread.h"

namespace regatta {

// Workers that may run the same tasks: those of a group. Loading and delivering belong to the CPU
// group, or to loaders, which are a pool of their own.
struct Pool {
  std::string group;  // of the plan; "host": loaders
  DeviceKind kind = DeviceKind::cpu;
  int workers = 1;
  int memory = 0;  // pools of one memory share it
  int team = 1;    // cores of a worker
};

// What the tasks of a step cost, and which workers may run them.
class NodeCosts {
 public:
  // The list was lowered from the blueprint and maybe split. Both must stay.
  NodeCosts(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs);

  const Blueprint& blueprint() const { return blueprint_; }
  const TaskList& list() const { return list_; }
  const RuntimeCosts& runtime() const { return runtime_; }
  std::size_t tasks() const { return list_.tasks.size(); }
  const std::vector<Pool>& pools() const { return pools_; }
  int host_pool() const { return host_; }
  int pool_of(std::size_t task) const { return pool_of_[task]; }
  double buffers(std::size_t task) const {
    return static_cast<double>(list_.tasks[task].accesses.size());
  }
  // A task's seconds while `busy` workers of its pool have a task, `shift` half-intervals away from
  // the estimate.
  double seconds(std::size_t task, int busy, double shift) const;
  bool several_memories() const { return memories_ > 1; }
  int memories() const { return memories_; }

 protected:
  bool staged() const { return !blueprint_.plan.stages.empty(); }

 private:
  struct Line {
    double alone = 0, each = 0;   // seconds, and more for each further busy worker
    double below = 0, above = 0;  // half-intervals, as parts of the seconds
  };
  void make_pools();
  int pool_for(const Task& task) const;
  void make_lines(const TaskCosts& costs);

  const Blueprint& blueprint_;
  const TaskList& list_;
  RuntimeCosts runtime_;
  std::vector<Pool> pools_;
  int host_ = 0, memories_ = 1;
  std::vector<int> pool_of_;
  std::vector<Line> lines_;
};

// What several ranks bring together in a step: the gradients of every bucket, numbered as buckets
// are, then the sums of every meeting of the list, in its order.
struct ExchangeId {
  std::uint32_t value = 0;
  auto operator<=>(const ExchangeId&) const = default;
};

class NodeWork : public NodeCosts {
 public:
  // `places`: what the plan fixes of the list's tasks. `several_ranks`: gradients are exchanged
  // with other ranks; so are the sums of meetings, if the blueprint knows of these ranks.
  NodeWork(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs,
           std::vector<FixedPlace> places, bool several_ranks);

  FixedPlace place(std::size_t task, std::int64_t step) const { return places_.at(task, step); }
  double rank(std::size_t task) const { return ranks_[task]; }
  double release_seconds(std::size_t task) const {
    return regatta::release_seconds(list().tasks[task], runtime());
  }
  // From the begin of submitting a step to the submission of a task, and of them all.
  double submitted_after(std::size_t task) const { return submission_[task]; }
  double submission_seconds() const { return submission_seconds_; }
  int steps_in_flight() const { return blueprint().plan.steps_in_flight; }
  // The chunk whose data a task wants at hand.
  std::optional<ChunkId> home_chunk(std::size_t task) const;

  // How far tasks of a pool spread, by what chance has in store for a rank.
  Spread spread(std::size_t pool, std::uint64_t seed) const;

  // Tasks of a step that wait for `task` of the step `back` steps before it.
  const std::vector<std::uint32_t>& successors(std::int64_t step, std::size_t back,
                                               std::size_t task) const;
  const std::vector<std::uint32_t>& waits(std::int64_t step) const;  // by task: for how many
  std::size_t furthest() const { return furthest_; }                 // the largest `back`, plus one

  // The exchanges that a task waits for, and the task that waits for an exchange.
  const std::vector<ExchangeId>& exchanged(std::size_t task) const { return exchanged_[task]; }
  std::size_t awaits(ExchangeId exchange) const { return awaiting_[exchange.value]; }
  double exchange_bytes(ExchangeId exchange) const { return exchange_bytes_[exchange.value]; }
  bool of_bucket(ExchangeId exchange) const { return exchange.value < blueprint().buckets.size(); }
  // Meetings with other ranks.
  std::size_t meetings() const {
    return awaiting_.empty() ? 0 : awaiting_.size() - blueprint().buckets.size();
  }
  int home_memory(std::uint32_t buffer) const;  // before anyone wrote it; -1: nowhere

 private:
  struct Pattern {
    std::vector<std::vector<std::vector<std::uint32_t>>> successors;  // by back, by task
    std::vector<std::uint32_t> waits;
  };
  void find_exchanges();
  void submit_side_by_side();
  std::vector<double> busiest_seconds() const;
  void connect();
  std::size_t pattern_of(std::int64_t step) const;

  StepPlaces places_;
  std::vector<std::vector<double>> levels_;  // by pool, as Spread takes them
  std::vector<double> ranks_, submission_;
  double submission_seconds_ = 0;
  std::vector<Pattern> patterns_;
  std::size_t furthest_ = 1;
  std::vector<std::vector<ExchangeId>> exchanged_;
  std::vector<std::size_t> awaiting_;   // by exchange
  std::vector<double> exchange_bytes_;  // likewise: of each rank
};

}  // namespace regatta
