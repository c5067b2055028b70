#include "tasks/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/models.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

using testing::ElementsAre;
using Edge = Dependencies::Edge;

TaskList list_of(const std::vector<std::vector<Access>>& accesses, std::size_t buffers,
                 int copies = 1) {
  TaskList list;
  for (std::uint32_t b = 0; b < buffers; ++b)
    list.buffers.push_back({BufferKind::border, b, 0, 4, copies});
  for (const std::vector<Access>& each : accesses) {
    Task task;
    task.actions.push_back({});
    task.accesses = each;
    list.tasks.push_back(task);
  }
  return list;
}

TEST(Dependencies, ReadersWaitForTheWriterAndTheNextWriterForThem) {
  const TaskList list = list_of(
      {{{0, Mode::write}}, {{0, Mode::read}}, {{0, Mode::read}}, {{0, Mode::read_write}}}, 1);
  Dependencies dependencies;
  EXPECT_THAT(dependencies.follow(list, 0, 10),
              ElementsAre(Edge{11, 10}, Edge{12, 10}, Edge{13, 11}, Edge{13, 12}));
}

TEST(Dependencies, StepsWaitForEachOtherUnlessABufferHasCopies) {
  const TaskList list = list_of({{{0, Mode::write}}, {{0, Mode::read}}}, 1);
  Dependencies one;
  one.follow(list, 0, 0);
  EXPECT_THAT(one.follow(list, 1, 2), ElementsAre(Edge{2, 1}, Edge{3, 2}));
  const TaskList copied = list_of({{{0, Mode::write}}, {{0, Mode::read}}}, 1, 2);
  Dependencies two;
  two.follow(copied, 0, 0);
  EXPECT_THAT(two.follow(copied, 1, 2), ElementsAre(Edge{3, 2}));
  EXPECT_THAT(two.follow(copied, 2, 4), ElementsAre(Edge{4, 1}, Edge{5, 4}));
}

TEST(Dependencies, WhatATaskSubmitsWaitsForItAndListsAreSubmittedInTurn) {
  TaskList list = list_of({{}, {{0, Mode::write}}, {}, {{1, Mode::write}}}, 2, 2);
  for (const std::size_t t : {0, 2}) list.tasks[t].actions.front().phase = Phase::submit;
  Dependencies dependencies;
  EXPECT_THAT(dependencies.follow(list, 0, 0), ElementsAre(Edge{1, 0}, Edge{2, 0}, Edge{3, 2}));
  EXPECT_THAT(dependencies.follow(list, 1, 4),
              ElementsAre(Edge{4, 2}, Edge{5, 4}, Edge{6, 4}, Edge{7, 6}));
}

TEST(Dependencies, ReductionsCommuteAndTheirReaderWaitsForAll) {
  const TaskList list = list_of({{{0, Mode::read}},
                                 {{0, Mode::reduce}},
                                 {{0, Mode::reduce}},
                                 {{0, Mode::read}},
                                 {{0, Mode::write}}},
                                1);
  Dependencies dependencies;
  EXPECT_THAT(dependencies.follow(list, 0, 0),
              ElementsAre(Edge{1, 0}, Edge{2, 0}, Edge{3, 1}, Edge{3, 2}, Edge{4, 3}));
}

TEST(Dependencies, AWriterAfterReductionsWaitsForThem) {
  const TaskList list = list_of({{{0, Mode::reduce}}, {{0, Mode::reduce}}, {{0, Mode::write}}}, 1);
  Dependencies dependencies;
  EXPECT_THAT(dependencies.follow(list, 0, 0), ElementsAre(Edge{2, 0}, Edge{2, 1}));
}

TEST(Dependencies, WhatIsForgottenIsNotWaitedFor) {
  const TaskList list = list_of({{{0, Mode::write}}, {{0, Mode::read}}, {{0, Mode::read}}}, 1);
  Dependencies dependencies;
  dependencies.follow(list, 0, 0);
  dependencies.forget_before(2);
  EXPECT_THAT(dependencies.follow(list, 1, 3), ElementsAre(Edge{3, 2}, Edge{4, 3}, Edge{5, 3}));
  dependencies.forget_before(6);
  EXPECT_THAT(dependencies.follow(list, 2, 6), ElementsAre(Edge{7, 6}, Edge{8, 6}));
}

TEST(Dependencies, ARealStepIsOneConnectedWhole) {
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint blueprint = make_blueprint(
      graph, plan_for(graph, 16, {.workers = 2, .chunks = std::vector<std::int64_t>{4}}), {}, true);
  const TaskList list = lower(blueprint, Job::train);
  Dependencies dependencies;
  std::vector<bool> waits(list.tasks.size());
  for (const auto& [task, on] : dependencies.follow(list, 0, 0)) {
    EXPECT_LT(on, task);
    waits[static_cast<std::size_t>(task)] = true;
  }
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    EXPECT_EQ(waits[t], list.tasks[t].actions.front().phase != Phase::load) << t;
}

}  // namespace
}  // namespace regatta
