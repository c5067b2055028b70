// Which memories have a copy of a buffer, and how many bytes that is.
#include "tasks/footprint.h"

#include <gtest/gtest.h>

#include "models/models.h"
#include "support/executor_run.h"
#include "tasks/dependencies.h"

namespace regatta {
namespace {

class SharedBatch : public testing::Test {
 protected:
  static Blueprint shared(std::int64_t on_cpu, std::int64_t on_gpu) {
    const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
    PlanOptions options{.workers = 1};
    options.devices = {DeviceKind::cpu, DeviceKind::cuda};
    options.shares = {on_cpu, on_gpu};
    return make_blueprint(graph, plan_for(graph, on_cpu + on_gpu, options), {}, true);
  }
  static bool both(const Blueprint& blueprint, BufferKind kind, std::uint32_t first = 0,
                   std::uint32_t second = 0) {
    const auto users = buffer_users(blueprint, /*training=*/true);
    const auto found = users.find({kind, first, second});
    EXPECT_NE(found, users.end());
    return found != users.end() && found->second.several();
  }
};

TEST_F(SharedBatch, ParametersAndStatisticsAreInBothMemories) {
  const Blueprint blueprint = shared(2, 6);
  EXPECT_TRUE(both(blueprint, BufferKind::parameters));
  EXPECT_TRUE(both(blueprint, BufferKind::statistics));
}

TEST_F(SharedBatch, WhatOneDeviceKeepsToItselfIsInOneMemory) {
  const Blueprint blueprint = shared(2, 6);
  EXPECT_FALSE(both(blueprint, BufferKind::arena, 0, 0));
  EXPECT_FALSE(both(blueprint, BufferKind::arena, 0, 1));
  EXPECT_FALSE(both(blueprint, BufferKind::moment));
}

// The owner's own gradient never leaves it; the other's comes to it.
TEST_F(SharedBatch, OnlyTheGradientOfTheOthersIsInBothMemories) {
  for (const bool gpu_owns : {true, false}) {
    const Blueprint blueprint = gpu_owns ? shared(2, 6) : shared(6, 2);
    EXPECT_EQ(blueprint.group(blueprint.owner).kind, gpu_owns ? DeviceKind::cuda : DeviceKind::cpu);
    EXPECT_EQ(blueprint.group_of_slot(0), blueprint.owner);
    EXPECT_FALSE(both(blueprint, BufferKind::gradient, 0, 0)) << gpu_owns;
    EXPECT_TRUE(both(blueprint, BufferKind::gradient, 0, 1)) << gpu_owns;
  }
}

TEST_F(SharedBatch, ACopyInEachMemoryIsCounted) {
  const Blueprint blueprint = shared(2, 6);
  const TaskList list = lower(blueprint, ListKind::train);
  std::size_t on_host = 0, on_gpu = 0;
  for (const Footprint& each : footprints(blueprint, {&list})) {
    if (each.kind != BufferKind::parameters) continue;
    const bool gpu = blueprint.group(each.group).kind == DeviceKind::cuda && !each.host;
    (gpu ? on_gpu : on_host) += each.bytes;
  }
  EXPECT_GT(on_gpu, 0u);
  EXPECT_EQ(on_host, on_gpu);
}

TEST_F(SharedBatch, AMeetingTouchesOnlyItsOwnOperatorsBytes) {
  const Blueprint blueprint = shared(2, 6);
  const TaskList list = lower(blueprint, ListKind::train);
  std::size_t meetings = 0;
  for (const Task& task : list.tasks) {
    const Phase phase = task.actions.front().phase;
    if (phase != Phase::combine && phase != Phase::combine_gradient) continue;
    ++meetings;
    for (const Access& access : task.accesses)
      EXPECT_LT(4 * bytes_of(list, access), list.buffers[access.buffer].bytes);
  }
  EXPECT_GT(meetings, 10u);
}

// One sum of the cores' gradients crosses to the GPU, not one for each core.
TEST_F(SharedBatch, CoresSumTheirGradientsBeforeTheyCross) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  PlanOptions options{.workers = 3, .chunks = std::vector<std::int64_t>{3}};
  options.devices = {DeviceKind::cpu, DeviceKind::cuda};
  options.shares = {3, 5};
  const Blueprint blueprint = make_blueprint(graph, plan_for(graph, 8, options), {}, true);
  const GroupId cores{0};
  ASSERT_NE(blueprint.owner, cores);
  EXPECT_TRUE(sums_own_slots(blueprint, cores));
  EXPECT_EQ(slots_of(blueprint, cores).count, 3);
  EXPECT_TRUE(both(blueprint, BufferKind::group_sum, 0, cores.value));
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    EXPECT_FALSE(both(blueprint, BufferKind::gradient, 0, slot)) << slot;
  // Each gradient is in exactly one sum.
  const TaskList list = lower(blueprint, ListKind::train);
  EXPECT_EQ(faults(list), std::vector<std::string>{});
  std::map<std::uint32_t, int> summed;  // by slot of the first bucket
  for (const Task& task : list.tasks)
    if (task.actions.front().phase == Phase::reduce && task.actions.front().bucket == BucketId{0})
      for (const Access& access : task.accesses) {
        const Buffer& buffer = list.buffers[access.buffer];
        if (buffer.kind == BufferKind::gradient) ++summed[buffer.second];
      }
  EXPECT_EQ(summed, (std::map<std::uint32_t, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
}

TEST(LoadPieces, TogetherAreTheChunk) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 64, 64}, .classes = 10}));
  PlanOptions options{.workers = 8};
  options.devices = {DeviceKind::cuda};
  const Blueprint blueprint = make_blueprint(graph, plan_for(graph, 250, options), {}, true);
  const Chunk& chunk = blueprint.chunks.front();
  const std::uint32_t pieces = load_pieces(blueprint, chunk);
  EXPECT_GT(pieces, 1u);
  EXPECT_LE(pieces, static_cast<std::uint32_t>(blueprint.plan.loaders));
  for (const std::int64_t live : {250, 249, 3, 0}) {
    std::int64_t next = 7;
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      const ChunkSpan span = piece_of(blueprint, chunk, piece, {7, live});
      EXPECT_EQ(span.first, next);
      next = span.first + span.count;
    }
    EXPECT_EQ(next, 7 + live);
  }
}

// Loads of one batch run side by side; the step waits for all of them.
TEST(LoadPieces, DoNotWaitForEachOther) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 64, 64}, .classes = 10}));
  PlanOptions options{.workers = 8};
  options.devices = {DeviceKind::cuda};
  const Blueprint blueprint = make_blueprint(graph, plan_for(graph, 250, options), {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  const std::uint32_t pieces = load_pieces(blueprint, blueprint.chunks.front());
  std::vector<std::uint32_t> waits(list.tasks.size(), 0);
  for (const auto& [task, on] : Dependencies().follow(list, 0, 0))
    ++waits[static_cast<std::size_t>(task)];
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    EXPECT_EQ(list.tasks[piece].actions.front().phase, Phase::load);
    EXPECT_EQ(waits[piece], 0u);
  }
  EXPECT_EQ(waits[pieces], pieces);
}

}  // namespace
}  // namespace regatta
