#include "tasks/spread.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/models.h"
#include "support/executor_run.h"
#include "tasks/play.h"

namespace regatta {
namespace {

constexpr int workers = 4;
const std::vector<double> levels{0.7, 0.9, 1.1, 1.7};

Blueprint four_chunks() {
  const Graph graph = fuse(build_model("tiny"));
  return make_blueprint(
      graph, plan_for(graph, 8, {.workers = workers, .chunks = std::vector<std::int64_t>{4}}), {},
      true);
}

// Every chunk goes forward once; then all meet.
TaskList one_meeting() {
  TaskList list;
  for (std::uint32_t c = 0; c < 4; ++c) {
    list.buffers.push_back({BufferKind::border, c, 0, 4, 1});
    Task task;
    task.actions.push_back({.phase = Phase::forward, .chunk = ChunkId{c}});
    task.accesses = {{c, Mode::read_write}};
    task.flops = 1;
    list.tasks.push_back(task);
  }
  Task meeting;
  meeting.actions.push_back({.phase = Phase::reduce});
  for (std::uint32_t c = 0; c < 4; ++c) meeting.accesses.push_back({c, Mode::read_write});
  meeting.flops = 1e-6;
  list.tasks.push_back(meeting);
  return list;
}

TEST(Spread, OfNothingKnownEveryTaskTakesItsTypicalTime) {
  const Blueprint blueprint = four_chunks();
  EXPECT_EQ(Spread().factor(3, 2, 1), 1);
  EXPECT_EQ(Spread(blueprint, one_meeting(), {}, workers).factor(3, 2, 1), 1);
}

TEST(Spread, DrawsStayBetweenTheLevelsAndHaveTheirMean) {
  const Blueprint blueprint = four_chunks();
  const TaskList list = one_meeting();
  const Spread spread(blueprint, list, levels, workers);
  double sum = 0;
  constexpr int steps = 2000;
  for (int step = 0; step < steps; ++step)
    for (std::size_t task = 0; task < 4; ++task) {
      const double factor = spread.factor(step, task, static_cast<int>(task));
      EXPECT_GE(factor, levels.front());
      EXPECT_LE(factor, levels.back());
      sum += factor;
    }
  EXPECT_NEAR(sum / steps / 4, 1.1, 0.01);
}

TEST(Spread, ASeedGivesTheSameStepsAgainAndAnotherGivesOthers) {
  const Blueprint blueprint = four_chunks();
  const TaskList list = one_meeting();
  const Spread first(blueprint, list, levels, workers, 7),
      again(blueprint, list, levels, workers, 7), other(blueprint, list, levels, workers, 8);
  int same = 0;
  for (int step = 0; step < 50; ++step) {
    EXPECT_EQ(first.factor(step, 1, 2), again.factor(step, 1, 2));
    same += first.factor(step, 1, 2) == other.factor(step, 1, 2);
  }
  EXPECT_LT(same, 10);
}

// The tasks of a slow worker are slow together, more often than those of two workers.
TEST(Spread, AWorkersTasksOfAStepResembleEachOther) {
  const Blueprint blueprint = four_chunks();
  TaskList list = one_meeting();
  for (std::uint32_t part = 1; part < 3; ++part)
    for (std::uint32_t c = 0; c < 4; ++c) {
      Task task = list.tasks[c];
      task.actions.front().part = part;
      list.tasks.push_back(task);
    }
  const Spread spread(blueprint, list, levels, workers);
  constexpr std::size_t here = 0, later = 5;  // parts 0 and 1 of chunk 0
  double together = 0, apart = 0;
  for (int step = 0; step < 4000; ++step) {
    const double first = spread.factor(step, here, 0) - 1.1;
    together += first * (spread.factor(step, later, 0) - 1.1);
    apart += first * (spread.factor(step, later, 1) - 1.1);
  }
  EXPECT_GT(together / 4000, 0.01);
  EXPECT_LT(std::abs(apart), together / 2);
}

class SpreadCosts final : public TaskCosts {
 public:
  Estimate of(const Task& task, int) const override { return {task.flops, task.flops, task.flops}; }
  RuntimeCosts runtime() const override { return {0, 0, 0, 0, 0, 0}; }
  std::vector<double> spread(GroupId) const override { return levels; }
};

// All four draw from different quarters, so the last to come is from the slowest one most times;
// without spread the step would take a second.
TEST(Spread, WhereWorkersMeetTheSlowestCounts) {
  const Blueprint blueprint = four_chunks();
  const Played played = play(blueprint, one_meeting(), SpreadCosts{});
  EXPECT_GT(played.step_seconds, 1.3);
  EXPECT_LT(played.step_seconds, 1.7);
  EXPECT_NEAR(played.total.busy, 1.1 / played.step_seconds, 0.05);
}

}  // namespace
}  // namespace regatta
