// Which task waits for which where StarPU is not told of data.
#include "exec/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <thread>

#include "exec/submission.h"
#include "models/models.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The tasks that may start when a task has ended.
std::vector<TaskRun*> opened(Gate& gate) {
  std::vector<TaskRun*> through;
  gate.ended.open([&](TaskRun& run) { through.push_back(&run); });
  return through;
}

TEST(Gate, LetsThroughWhoWaitsForNothingElse) {
  Gate first, second, last;
  Gate::Waiter at_first, at_second;
  TaskRun run;
  last.wait_for(first.ended, at_first, run);
  last.wait_for(second.ended, at_second, run);
  EXPECT_FALSE(last.count_down());
  EXPECT_THAT(opened(second), IsEmpty());
  EXPECT_THAT(opened(first), ElementsAre(&run));
}

TEST(Gate, WhoIsNotYetHandedOverIsNotLetThrough) {
  Gate first, last;
  Gate::Waiter waiter;
  TaskRun run;
  last.wait_for(first.ended, waiter, run);
  EXPECT_THAT(opened(first), IsEmpty());
  EXPECT_TRUE(last.count_down());
}

TEST(Gate, NobodyWaitsAtAnOpenOne) {
  Gate first, last;
  Gate::Waiter waiter;
  TaskRun run;
  EXPECT_THAT(opened(first), IsEmpty());
  last.wait_for(first.ended, waiter, run);
  EXPECT_TRUE(last.count_down());
}

TEST(Gate, LetsThroughManyInTheOrderInWhichTheyCame) {
  Gate first;
  std::vector<Gate> gates(5);
  std::vector<Gate::Waiter> waiters(gates.size());
  std::vector<TaskRun> runs(gates.size());
  for (std::size_t i = 0; i < gates.size(); ++i) {
    gates[i].wait_for(first.ended, waiters[i], runs[i]);
    EXPECT_FALSE(gates[i].count_down());
  }
  EXPECT_THAT(opened(first), ElementsAre(&runs[0], &runs[1], &runs[2], &runs[3], &runs[4]));
}

// Steps of a list, several on their way, carried out in any order that the gates allow.
class OnTheirWay {
 public:
  // `on_gpu`: by task, whether a GPU runs it.
  explicit OnTheirWay(const TaskList& list, std::vector<bool> on_gpu = {})
      : list_(list), gpu_tasks_(std::move(on_gpu)) {}

  void submit() {
    auto& [gates, runs] = lists_.emplace_back(nullptr, std::vector<TaskRun>(size()));
    for (std::size_t t = 0; t < gpu_tasks_.size(); ++t) runs[t].gpu = gpu_tasks_[t] ? 0 : -1;
    gates = gates_.add(list_, lists_.size() - 1, runs);
    const auto first_id = static_cast<std::int64_t>(size() * (lists_.size() - 1));
    for (const auto& [task, before] : dependencies_.follow(list_, lists_.size() - 1, first_id))
      waits_.emplace_back(task, before);
    for (std::size_t t = 0; t < size(); ++t)
      if ((*gates)[t].count_down()) ready_.push_back(id_of(runs[t]));
  }
  // One of those that are ready; false if none is.
  bool carry_out(std::mt19937& chance) {
    if (ready_.empty()) return false;
    std::swap(ready_[chance() % ready_.size()], ready_.back());
    const std::size_t id = ready_.back();
    ready_.pop_back();
    begun_[id] = clock_++;
    // Tasks of a GPU are only handed to it, and end later, in the order in which they were.
    const TaskRun& run = lists_[id / size()].second[id % size()];
    if (run.gpu >= 0) {
      gates_of(id).open_handed_over(id % size(), [&](TaskRun& next) { make_ready(next); });
      on_gpu_.push_back(id);
    } else {
      end(id);
    }
    return true;
  }
  // The GPU's oldest task ends; false if it has none.
  bool end_on_gpu() {
    if (on_gpu_.empty()) return false;
    const std::size_t id = on_gpu_.front();
    on_gpu_.pop_front();
    end(id);
    return true;
  }
  // Edges that were not respected: a task was begun before one that it waits for had ended or,
  // where a GPU runs both, had been begun.
  int broken() const {
    return static_cast<int>(std::ranges::count_if(waits_, [&](const Dependencies::Edge& edge) {
      const auto task = static_cast<std::size_t>(edge.first);
      const auto before = static_cast<std::size_t>(edge.second);
      const bool in_order = on_gpu(task) && on_gpu(before);
      return begun_.at(task) <= (in_order ? begun_ : ended_).at(before);
    }));
  }
  std::size_t done() const { return ended_.size(); }
  std::size_t size() const { return list_.tasks.size(); }
  std::size_t edges() const { return waits_.size(); }

 private:
  ListGates& gates_of(std::size_t id) { return *lists_[id / size()].first; }
  bool on_gpu(std::size_t id) const { return !gpu_tasks_.empty() && gpu_tasks_[id % size()]; }
  void make_ready(TaskRun& run) { ready_.push_back(id_of(run)); }
  void end(std::size_t id) {
    ended_[id] = clock_++;
    gates_of(id).open_ended(id % size(), [&](TaskRun& next) { make_ready(next); });
  }
  std::size_t id_of(const TaskRun& run) const {
    for (std::size_t l = 0; l < lists_.size(); ++l)
      if (&run >= lists_[l].second.data() && &run < lists_[l].second.data() + size())
        return l * size() + static_cast<std::size_t>(&run - lists_[l].second.data());
    ADD_FAILURE() << "let through whom nobody knows";
    return 0;
  }

  const TaskList& list_;
  Gates gates_;
  Dependencies dependencies_;
  std::deque<std::pair<std::shared_ptr<ListGates>, std::vector<TaskRun>>> lists_;
  std::vector<Dependencies::Edge> waits_;
  std::vector<std::size_t> ready_;
  std::vector<bool> gpu_tasks_;
  std::deque<std::size_t> on_gpu_;
  std::size_t clock_ = 0;
  std::map<std::size_t, std::size_t> begun_, ended_;  // by task
};

Blueprint blueprint_of(const Graph& graph) {
  PlanOptions options{.workers = 2, .chunks = std::vector<std::int64_t>{4}};
  options.segments = "block";
  return make_blueprint(graph, plan_for(graph, 8, options), {}, true);
}

TEST(Gates, KeepTheOrderOfStepsThatOverlap) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  const Blueprint blueprint = blueprint_of(graph);
  const TaskList list = lower(blueprint, ListKind::train);
  constexpr std::size_t steps = 6;
  for (unsigned seed = 0; seed < 20; ++seed) {
    OnTheirWay all(list);
    std::mt19937 chance(seed);
    for (std::size_t step = 0; step < steps; ++step) {
      all.submit();
      for (std::size_t some = chance() % (2 * all.size()); some > 0 && all.carry_out(chance);)
        --some;
    }
    while (all.carry_out(chance)) {
    }
    EXPECT_EQ(all.done(), steps * all.size()) << "somebody waits for ever";
    EXPECT_EQ(all.broken(), 0) << "of " << all.edges();
  }
}

// A GPU's tasks are begun when those before them were handed to it; CPU workers wait for their end.
TEST(Gates, KeepTheOrderBetweenCoresAndAGpu) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  PlanOptions options{.workers = 2, .chunks = std::vector<std::int64_t>{2}};
  options.devices = {DeviceKind::cpu, DeviceKind::cuda};
  options.shares = {3, 5};
  options.segments = "block";
  const Blueprint blueprint = make_blueprint(graph, plan_for(graph, 8, options), {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  std::vector<bool> on_gpu;
  for (const Task& task : list.tasks)
    on_gpu.push_back(!task.on_host && blueprint.group(task.group).kind == DeviceKind::cuda);
  constexpr std::size_t steps = 6;
  for (unsigned seed = 0; seed < 20; ++seed) {
    OnTheirWay all(list, on_gpu);
    std::mt19937 chance(seed);
    for (std::size_t step = 0; step < steps; ++step) {
      all.submit();
      for (std::size_t some = chance() % (2 * all.size()); some > 0; --some)
        if (chance() % 4 == 0 ? !all.end_on_gpu() : !all.carry_out(chance)) break;
    }
    while (all.carry_out(chance) || all.end_on_gpu()) {
    }
    EXPECT_EQ(all.done(), steps * all.size()) << "a task waits for ever";
    EXPECT_EQ(all.broken(), 0) << "of " << all.edges();
  }
}

// One thread hands over while others carry out.
TEST(Gates, AreOpenedByManyWhileOthersLineUp) {
  constexpr std::size_t rounds = 2'000, before = 4;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Gate> first(before);
    Gate last;
    std::vector<Gate::Waiter> waiters(before);
    TaskRun run;
    std::atomic<int> through = 0;
    std::atomic<bool> go = false;
    {
      std::vector<std::jthread> threads;
      for (std::size_t half = 0; half < 2; ++half)
        threads.emplace_back([&, half] {
          while (!go) {
          }
          for (std::size_t i = half; i < before; i += 2)
            first[i].ended.open([&](TaskRun&) { ++through; });
        });
      go = true;
      for (std::size_t i = 0; i < before; ++i) last.wait_for(first[i].ended, waiters[i], run);
      if (last.count_down()) ++through;
    }
    ASSERT_EQ(through, 1) << round;
  }
}

}  // namespace
}  // namespace regatta
