// Who waits for whom where StarPU is not told of data.
#include "exec/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "exec/submission.h"
#include "models/models.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Whom an opened gate lets through.
std::vector<TaskRun*> opened(Gate& gate) {
  std::vector<TaskRun*> through;
  gate.open([&](TaskRun& run) { through.push_back(&run); });
  return through;
}

TEST(Gate, LetsThroughWhoWaitsForNothingElse) {
  Gate first, second, last;
  Gate::Waiter at_first, at_second;
  TaskRun run;
  last.wait_for(first, at_first, run);
  last.wait_for(second, at_second, run);
  EXPECT_FALSE(last.arrives());
  EXPECT_THAT(opened(second), IsEmpty());
  EXPECT_THAT(opened(first), ElementsAre(&run));
}

TEST(Gate, WhoIsNotYetHandedOverIsNotLetThrough) {
  Gate first, last;
  Gate::Waiter waiter;
  TaskRun run;
  last.wait_for(first, waiter, run);
  EXPECT_THAT(opened(first), IsEmpty());
  EXPECT_TRUE(last.arrives());
}

TEST(Gate, NobodyWaitsAtAnOpenOne) {
  Gate first, last;
  Gate::Waiter waiter;
  TaskRun run;
  EXPECT_THAT(opened(first), IsEmpty());
  last.wait_for(first, waiter, run);
  EXPECT_TRUE(last.arrives());
}

TEST(Gate, LetsThroughManyInTheOrderInWhichTheyCame) {
  Gate first;
  std::vector<Gate> gates(5);
  std::vector<Gate::Waiter> waiters(gates.size());
  std::vector<TaskRun> runs(gates.size());
  for (std::size_t i = 0; i < gates.size(); ++i) {
    gates[i].wait_for(first, waiters[i], runs[i]);
    EXPECT_FALSE(gates[i].arrives());
  }
  EXPECT_THAT(opened(first), ElementsAre(&runs[0], &runs[1], &runs[2], &runs[3], &runs[4]));
}

// Steps of a list, several on their way, carried out in any order that the gates allow.
class OnTheirWay {
 public:
  explicit OnTheirWay(const TaskList& list) : list_(list) {}

  void submit() {
    auto& [gates, runs] = lists_.emplace_back(nullptr, std::vector<TaskRun>(size()));
    gates = gates_.follow(list_, lists_.size() - 1, runs);
    const auto first_id = static_cast<std::int64_t>(size() * (lists_.size() - 1));
    for (const auto& [task, before] : dependencies_.follow(list_, lists_.size() - 1, first_id))
      waits_.emplace_back(task, before);
    for (std::size_t t = 0; t < size(); ++t)
      if ((*gates)[t].arrives()) ready_.push_back(id_of(runs[t]));
  }
  // One of those that are ready; false if none is.
  bool carry_out(std::mt19937& chance) {
    if (ready_.empty()) return false;
    std::swap(ready_[chance() % ready_.size()], ready_.back());
    const std::size_t id = ready_.back();
    ready_.pop_back();
    done_.push_back(id);
    lists_[id / size()].first->open(id % size(),
                                    [&](TaskRun& run) { ready_.push_back(id_of(run)); });
    return true;
  }
  // Edges that were not respected.
  int broken() const {
    std::vector<std::size_t> when(lists_.size() * size());
    for (std::size_t i = 0; i < done_.size(); ++i) when[done_[i]] = i;
    return static_cast<int>(std::ranges::count_if(waits_, [&](const Dependencies::Edge& edge) {
      return when[static_cast<std::size_t>(edge.first)] <=
             when[static_cast<std::size_t>(edge.second)];
    }));
  }
  std::size_t done() const { return done_.size(); }
  std::size_t size() const { return list_.tasks.size(); }
  std::size_t edges() const { return waits_.size(); }

 private:
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
  std::vector<std::size_t> ready_, done_;
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
            first[i].open([&](TaskRun&) { ++through; });
        });
      go = true;
      for (std::size_t i = 0; i < before; ++i) last.wait_for(first[i], waiters[i], run);
      if (last.arrives()) ++through;
    }
    ASSERT_EQ(through, 1) << round;
  }
}

}  // namespace
}  // namespace regatta
