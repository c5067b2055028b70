#include "tasks/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

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

// The rules of one access after the other, over whole runs of lists: what the summaries of lists
// must add up to.
std::vector<Edge> edges_one_by_one(const std::vector<const TaskList*>& lists) {
  struct Latest {
    std::vector<std::int64_t> writers, readers, before;
    bool reducing = false;
  };
  std::map<std::pair<std::uint32_t, std::size_t>, Latest> copies;
  std::set<Edge> edges;
  std::int64_t id = 0;
  for (std::size_t step = 0; step < lists.size(); ++step)
    for (const Task& task : lists[step]->tasks) {
      for (const Access& access : task.accesses) {
        const Buffer& buffer = lists[step]->buffers[access.buffer];
        Latest& latest = copies[{buffer.first, step % static_cast<std::size_t>(buffer.copies)}];
        const bool reduces = access.mode == Mode::reduce;
        if (reduces && !latest.reducing) {
          latest.before = latest.readers.empty() ? latest.writers : latest.readers;
          latest.writers.clear();
          latest.readers.clear();
        }
        const std::vector<std::int64_t>& on = reduces ? latest.before
                                              : access.mode == Mode::read || latest.readers.empty()
                                                  ? latest.writers
                                                  : latest.readers;
        for (const std::int64_t each : on) edges.emplace(id, each);
        latest.reducing = reduces;
        if (access.mode == Mode::read)
          latest.readers.push_back(id);
        else if (reduces)
          latest.writers.push_back(id);
        else
          latest = {{id}, {}, latest.before, false};
      }
      ++id;
    }
  return {edges.begin(), edges.end()};
}

TEST(Dependencies, ListsInAnyOrderGiveTheEdgesOfTheirAccessesOneByOne) {
  std::mt19937 chance(7);
  for (int round = 0; round < 300; ++round) {
    constexpr std::uint32_t buffers = 4;
    const int copies = 1 + static_cast<int>(chance() % 3);
    std::vector<TaskList> kinds;
    for (int kind = 0; kind < 3; ++kind) {
      std::vector<std::vector<Access>> tasks(1 + chance() % 8);
      for (std::vector<Access>& task : tasks)
        for (std::uint32_t b = 0; b < buffers; ++b)
          if (chance() % 2 == 0) task.push_back({b, static_cast<Mode>(chance() % 4)});
      kinds.push_back(list_of(tasks, buffers, copies));
    }
    std::vector<const TaskList*> lists;
    for (int step = 0; step < 8; ++step) lists.push_back(&kinds[chance() % kinds.size()]);
    Dependencies dependencies;
    std::vector<Edge> edges;
    std::int64_t first_id = 0;
    for (std::size_t step = 0; step < lists.size(); ++step) {
      const std::vector<Edge> found = dependencies.follow(*lists[step], step, first_id);
      edges.insert(edges.end(), found.begin(), found.end());
      first_id += std::ssize(lists[step]->tasks);
    }
    ASSERT_EQ(edges, edges_one_by_one(lists)) << "round " << round;
  }
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
  const TaskList list = lower(blueprint, ListKind::train);
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
