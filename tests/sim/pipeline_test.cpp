// Pipelines made by hand, on platforms made by hand: times, bytes and joules are pinned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/models.h"
#include "sim/fleet_plan.h"
#include "tasks/stages.h"

namespace regatta::sim {
namespace {

// A FLOP takes a second.
class HandCosts final : public TaskCosts {
 public:
  Estimate of(const Task& task, int /*busy*/) const override {
    return {task.flops, task.flops * 0.9, task.flops * 1.1};
  }
  RuntimeCosts runtime() const override { return {0, 0, 0, 0, 0, 0}; }
};

// Every stage is one segment on a node of its own, with one worker.
struct Pipeline {
  explicit Pipeline(int stages, int chunks_each) : chunks(chunks_each) {
    const Graph graph = fuse(build_model("tiny"));
    Plan plan;
    plan.segments = {{NodeId{0}, NodeId{static_cast<std::uint32_t>(graph.nodes().size()) - 1}}};
    plan.steps_in_flight = 1;
    for (int s = 0; s < stages; ++s) {
      DeviceGroup group;
      group.chunks.assign(static_cast<std::size_t>(chunks), 1);
      plan.nodes.push_back({"n-" + std::to_string(s), {group}});
      plan.stages.push_back({plan.nodes.back().name, "cpu", 0, 0});
      rank.devices.push_back({0, 0});
      rank.nodes.push_back(s);
    }
    blueprint = make_blueprint(graph, plan, {}, true);
    PlatformNode node;
    node.name = "n";
    node.count = stages;
    node.groups = {
        {.name = "cpu", .count = 2, .memory = 1 << 30, .watts = {10, 30}, .costs = {.flops = 1}}};
    platform.name = "hand-made";
    platform.nodes = {node};
    platform.network.link = {1e6, 0};
  }

  std::uint32_t buffer(BufferKind kind, int first, int second) {
    for (std::uint32_t b = 0; b < list.buffers.size(); ++b)
      if (list.buffers[b].kind == kind && list.buffers[b].first == static_cast<unsigned>(first) &&
          list.buffers[b].second == static_cast<unsigned>(second))
        return b;
    list.buffers.push_back(
        {kind, static_cast<unsigned>(first), static_cast<unsigned>(second), message, 1});
    return static_cast<std::uint32_t>(list.buffers.size() - 1);
  }
  void task(Phase phase, int stage, int segment, int chunk, double seconds,
            std::vector<Access> accesses) {
    Task task;
    task.actions = {{.phase = phase,
                     .segment = SegmentId{static_cast<std::uint32_t>(segment)},
                     .chunk = ChunkId{static_cast<std::uint32_t>(chunk)}}};
    task.accesses = std::move(accesses);
    task.group = GroupId{static_cast<std::uint32_t>(stage)};
    task.flops = seconds;
    list.tasks.push_back(task);
  }
  // Segments in order, each with its stage and seconds of a chunk.
  struct Piece {
    int stage = 0;
    double seconds = 0;
  };
  void forward(const std::vector<Piece>& pieces) {
    for (int s = 0; s < static_cast<int>(pieces.size()); ++s)
      for (int c = 0; c < chunks; ++c) {
        std::vector<Access> accesses{{buffer(BufferKind::border, c, s), Mode::write}};
        if (s > 0) accesses.push_back({buffer(BufferKind::border, c, s - 1), Mode::read});
        const Piece& piece = pieces[static_cast<std::size_t>(s)];
        task(Phase::forward, piece.stage, s, c, piece.seconds, std::move(accesses));
      }
  }
  // Chunks add to one gradient in turn; then the stage updates its parameters.
  void backward(const std::vector<Piece>& pieces) {
    for (int s = static_cast<int>(pieces.size()); s-- > 0;) {
      const Piece& piece = pieces[static_cast<std::size_t>(s)];
      const std::uint32_t gradient = buffer(BufferKind::gradient, s, 0);
      for (int c = 0; c < chunks; ++c) {
        std::vector<Access> accesses{{buffer(BufferKind::border, c, s), Mode::read},
                                     {gradient, c == 0 ? Mode::write : Mode::read_write}};
        if (s + 1 < static_cast<int>(pieces.size()))
          accesses.push_back({buffer(BufferKind::border_gradient, c, s), Mode::read});
        if (s > 0) accesses.push_back({buffer(BufferKind::border_gradient, c, s - 1), Mode::write});
        task(Phase::backward, piece.stage, s, c, piece.seconds, std::move(accesses));
      }
      task(Phase::update, piece.stage, s, 0, 0, {{gradient, Mode::read}});
    }
  }
  Simulated play(SimulationOptions options = {.steps = 1}) {
    return simulate({platform, {{&blueprint, &list, &costs}}, {rank}, {}}, options);
  }

  int chunks;
  std::size_t message = 8;
  Platform platform;
  Rank rank;
  Blueprint blueprint = make_blueprint(
      fuse(build_model("tiny")), make_plan(fuse(build_model("tiny")), Recipe{}, {}), {}, true);
  TaskList list;
  HandCosts costs;
};

constexpr double links = 1e-3;  // what messages of eight bytes may take

TEST(Pipeline, TwoEqualStagesTakeOneChunkMoreThanTheyHave) {
  Pipeline pipe(2, 4);
  pipe.forward({{0, 1}, {1, 1}});
  EXPECT_NEAR(pipe.play().step_s[0], 4 + 1, links);
}

TEST(Pipeline, FillAndDrainGoesThereAndBack) {
  Pipeline pipe(3, 4);
  pipe.forward({{0, 1}, {1, 1}, {2, 1}});
  pipe.backward({{0, 2}, {1, 2}, {2, 2}});
  const Simulated made = pipe.play();
  EXPECT_NEAR(made.step_s[0], (4 + 2) * (1 + 2), links);
  // Nodes of two cores draw 20 W, and 20 W more while one of them works.
  EXPECT_NEAR(made.energy_j[0], 3 * 20 * made.step_s[0] + 20 * 3 * 4 * (1 + 2), 0.1);
  for (const GroupUse& use : made.groups) EXPECT_NEAR(use.busy_s, 4 * (1 + 2), 1e-6);
  EXPECT_EQ(made.groups[2].node, "n-2");
  // Two borders, crossed by every chunk there and back.
  EXPECT_NEAR(made.exchanged_bytes, 2 * 2 * 4 * 8, 1e-6);
}

TEST(Pipeline, AChunkGoesThroughAllSegmentsOfAStageBeforeTheNextOne) {
  Pipeline pipe(2, 4);
  pipe.forward({{0, 0.25}, {0, 0.25}, {0, 0.5}, {1, 0.5}, {1, 0.5}});
  EXPECT_NEAR(pipe.play().step_s[0], 4 + 1, links);
}

TEST(Pipeline, UnequalStagesAreBoundByTheSlowest) {
  Pipeline pipe(3, 5);
  pipe.forward({{0, 1}, {1, 3}, {2, 2}});
  EXPECT_NEAR(pipe.play().step_s[0], 1 + 5 * 3 + 2, links);
}

TEST(Pipeline, ASlowLinkIsTheBottleneck) {
  Pipeline pipe(2, 4);
  pipe.message = 2000000;  // two seconds each
  pipe.forward({{0, 1}, {1, 1}});
  EXPECT_NEAR(pipe.play().step_s[0], 1 + 4 * 2 + 1, 1e-6);
}

TEST(Pipeline, LatencyIsPaidOnceEachWay) {
  Pipeline pipe(2, 4);
  pipe.platform.network.link = {1e9, 0.25};  // up and down: half a second
  pipe.forward({{0, 1}, {1, 1}});
  EXPECT_NEAR(pipe.play().step_s[0], 4 + 1 + 0.5, links);
}

TEST(Pipeline, MessagesOfTwoStagesShareAWire) {
  // Both halves of the first stage's work leave over its one uplink, to two nodes.
  Pipeline pipe(3, 2);
  pipe.message = 1000000;
  for (int c = 0; c < 2; ++c)
    pipe.task(Phase::forward, 0, 0, c, 1, {{pipe.buffer(BufferKind::border, c, 0), Mode::write}});
  for (int c = 0; c < 2; ++c)
    pipe.task(Phase::forward, 1 + c, 1, c, 1,
              {{pipe.buffer(BufferKind::border, c, 0), Mode::read}});
  // Sent from 1 and 2 on; alone until 2. The second waits for nobody, and gets there at 3.
  EXPECT_NEAR(pipe.play().step_s[0], 4, 1e-6);
  pipe.message = 1500000;
  for (Buffer& buffer : pipe.list.buffers) buffer.bytes = pipe.message;
  // Half a second's bytes of the first are left when the second joins in: it takes 1 s for them,
  // and the second, which has a second's bytes left by then, arrives at 4.
  EXPECT_NEAR(pipe.play().step_s[0], 5, 1e-6);
}

TEST(Pipeline, AStepBeginsWithTheParametersOfTheOneBefore) {
  Pipeline pipe(2, 2);
  pipe.blueprint.plan.steps_in_flight = 2;
  pipe.forward({{0, 1}, {1, 1}});
  pipe.backward({{0, 1}, {1, 1}});
  // Each stage writes its parameters last, and reads them in the next forward.
  for (Task& task : pipe.list.tasks) {
    const auto segment = static_cast<int>(task.actions.front().segment.value);
    const Phase phase = task.actions.front().phase;
    task.accesses.push_back({pipe.buffer(BufferKind::parameters, segment, 0),
                             phase == Phase::update ? Mode::read_write : Mode::read});
  }
  const Simulated made = pipe.play({.steps = 4});
  EXPECT_NEAR(made.step_s[0], (2 + 1) * 2, links);
}

TEST(Pipeline, ReplicasDrawFromTheCostsIntervals) {
  Pipeline pipe(2, 2);
  pipe.forward({{0, 1}, {1, 1}});
  const Simulated made = pipe.play({.steps = 1, .replicas = 5});
  ASSERT_EQ(made.step_s.size(), 5u);
  EXPECT_NEAR(made.step_s[0], 3, links);
  for (std::size_t r = 1; r < 5; ++r) {
    EXPECT_NE(made.step_s[r], made.step_s[0]);
    EXPECT_NEAR(made.step_s[r], 3, 0.6);
  }
}

}  // namespace
}  // namespace regatta::sim
