#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "models/models.h"
#include "support/executor_run.h"
#include "support/grouped.h"
#include "tasks/task_list.h"

namespace regatta {
namespace {

TaskList lowered(const Graph& graph, std::int64_t batch, const PlanOptions& options,
                 ListKind job = ListKind::train) {
  return lower(make_blueprint(graph, plan_for(graph, batch, options), {}, true), job);
}

std::size_t count(const TaskList& list, Phase phase) {
  std::size_t found = 0;
  for (const Task& task : list.tasks)
    for (const Action& action : task.actions) found += action.phase == phase;
  return found;
}

TEST(Lower, ASmallNetworkOnOneChunkIsOneTask) {
  const Graph graph = fuse(build_model("tiny"));
  EXPECT_EQ(lowered(graph, 10, {.workers = 2}).tasks.size(), 1u);
}

TEST(Lower, AWholeStepOnAGpuIsOneTaskBesideLoadingAndDelivering) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  const TaskList list = lowered(graph, 12, {.workers = 3, .devices = {DeviceKind::cuda}});
  ASSERT_EQ(list.tasks.size(), 3u);
  EXPECT_TRUE(list.tasks[0].on_host);
  EXPECT_FALSE(list.tasks[1].on_host);
  EXPECT_TRUE(list.tasks[2].on_host);
  EXPECT_EQ(list.tasks[1].actions.back().phase, Phase::pack);
  EXPECT_EQ(faults(list), std::vector<std::string>{});
}

TEST(Lower, UnequalGroupsShareAStepSoundly) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  PlanOptions options{.workers = 2, .devices = {DeviceKind::cpu, DeviceKind::cuda}};
  options.shares = {5, 7};
  for (const char* segments : {"step", "block", "op"})
    for (const ListKind job : {ListKind::prepare, ListKind::train, ListKind::evaluate}) {
      options.segments = segments;
      EXPECT_EQ(faults(lowered(graph, 12, options, job)), std::vector<std::string>{});
    }
}

TEST(Lower, PlainDataParallelismIsATaskPerChunkAndOnePerBucket) {
  const Graph graph = fuse(build_model("lenet5"));
  const TaskList list = lowered(graph, 64, {.workers = 2, .chunks = std::vector<std::int64_t>{2}});
  // Two loads, two forward-backward tasks, one reduce-update-pack.
  EXPECT_EQ(list.tasks.size(), 5u);
}

TEST(Lower, GatheredLoadsSaveATaskForEachChunk) {
  for (const char* model : {"lenet5", "resnet18"})
    for (const char* segments : {"step", "block", "op"})
      for (const ListKind job : {ListKind::train, ListKind::middle}) {
        const Graph graph = fuse(build_model(model, {.input = Shape{3, 32, 32}, .classes = 10}));
        Plan plan = plan_for(
            graph, 24, {.workers = 2, .chunks = std::vector{3L, 5L, 16L}, .segments = segments});
        const TaskList ahead = lower(make_blueprint(graph, plan, {}, true), job);
        plan.gather_loads = true;
        const TaskList gathered = lower(make_blueprint(graph, plan, {}, true), job);
        EXPECT_EQ(faults(gathered), std::vector<std::string>{});
        EXPECT_EQ(gathered.tasks.size() + 3, ahead.tasks.size());
        EXPECT_EQ(count(gathered, Phase::load), 3u);
        for (const Task& task : gathered.tasks)
          if (task.actions.front().phase == Phase::load) {
            EXPECT_EQ(task.actions[1].phase, Phase::forward);
            EXPECT_EQ(task.actions[1].chunk, task.actions[0].chunk);
            EXPECT_FALSE(task.on_host);
            EXPECT_EQ(task.priority, 0);
          }
      }
}

TEST(Lower, AGpusSamplesAreLoadedApartThoughLoadsAreGathered) {
  const Graph graph = fuse(build_model("lenet5"));
  PlanOptions options{.workers = 2, .chunks = std::vector{2L}};
  options.devices = {DeviceKind::cpu, DeviceKind::cuda};
  options.shares = {4, 8};
  Plan plan = plan_for(graph, 12, options);
  plan.gather_loads = true;
  const TaskList list = lower(make_blueprint(graph, plan, {}, true), ListKind::train);
  EXPECT_EQ(faults(list), std::vector<std::string>{});
  EXPECT_EQ(count(list, Phase::load), 3u);
  for (const Task& task : list.tasks)
    if (task.actions.front().phase == Phase::load) {
      const bool apart = task.actions.size() == 1;
      EXPECT_EQ(apart, task.group == GroupId{1});
      EXPECT_EQ(task.on_host, apart);
    }
}

TEST(Lower, ACutBatchMeetsAtEveryBatchNormBothWays) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  const PlanOptions cut{.workers = 2, .chunks = std::vector<std::int64_t>{3}};
  EXPECT_EQ(count(lowered(graph, 12, cut), Phase::combine), 20u);
  EXPECT_EQ(count(lowered(graph, 12, cut), Phase::combine_gradient), 20u);
  EXPECT_EQ(count(lowered(graph, 12, cut, ListKind::evaluate), Phase::combine), 0u);
  const PlanOptions whole{.workers = 2, .chunks = std::vector<std::int64_t>{1}};
  EXPECT_EQ(count(lowered(graph, 12, whole), Phase::combine), 0u);
}

TEST(Lower, EveryPlanGivesASoundListThatDoesTheSameWork) {
  for (const char* model : {"lenet5", "resnet18"}) {
    const Graph graph = fuse(build_model(model, {.input = Shape{3, 32, 32}, .classes = 10}));
    const auto nodes = static_cast<std::uint64_t>(graph.nodes().size());
    double flops = 0;
    for (std::uint64_t trial = 0; trial < 40; ++trial) {
      const auto draw = [&](std::uint64_t index, std::uint64_t below) {
        return random_bits(3, trial, index) % below;
      };
      PlanOptions options;
      options.workers = 1 + static_cast<int>(draw(0, 4));
      std::int64_t left = 24;
      std::vector<std::int64_t> chunks;
      for (std::uint64_t i = 0; left > 0; ++i) {
        chunks.push_back(1 + static_cast<std::int64_t>(draw(10 + i, std::uint64_t(left))));
        left -= chunks.back();
      }
      if (chunks.size() == 1) chunks = {1};
      options.chunks = chunks;
      options.segments = std::to_string(1 + draw(1, nodes));
      options.reduction = static_cast<Reduction>(draw(2, 3));
      for (const ListKind job : {ListKind::prepare, ListKind::train, ListKind::evaluate}) {
        const TaskList list = lowered(graph, 24, options, job);
        EXPECT_EQ(faults(list), std::vector<std::string>{});
        if (job != ListKind::train) continue;
        double total = 0;
        for (const Task& task : list.tasks) total += task.flops;
        if (options.chunks->size() > 1) continue;  // a meeting operator's work counts per part
        if (flops == 0) flops = total;
        EXPECT_DOUBLE_EQ(total, flops);
      }
    }
  }
}

TEST(ValueForms, ImagesForTensorCoresHaveWholeVectorsOfChannels) {
  const Graph graph = build_model("resnet18", {.input = Shape{3, 32, 32}});
  const auto elements = [&](Layout layout, Precision precision) {
    return value_forms(graph, layout, precision)[graph.input().value].elements / (32 * 32);
  };
  EXPECT_EQ(elements(Layout::nhwc, Precision::bf16), 8);
  EXPECT_EQ(elements(Layout::nhwc, Precision::tf32), 4);
  EXPECT_EQ(elements(Layout::nhwc, Precision::fp32), 3);
  EXPECT_EQ(elements(Layout::nchw, Precision::bf16), 3);
}

TEST(Arena, TensorsAliveTogetherNeverOverlap) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  const NodeId first = graph.input(), last = graph.loss();
  const std::vector<ValueForm> forms = value_forms(graph, Layout::blocked16, Precision::fp32);
  for (const bool cut : {false, true}) {
    const Program program = program_of(graph, first, last, Pass::train, cut);
    const ArenaMap map = plan_arena(graph, first, last, Pass::train, program, forms, 5);
    // Replays the program, writing each tensor's own mark over its bytes: a tensor that is read
    // later must still carry its mark.
    std::vector<std::uint32_t> memory(map.bytes / 64);
    const auto bytes = [&](NodeId id) {
      return static_cast<std::int64_t>(forms[id.value].bytes(5));
    };
    const auto lines = [&](std::size_t offset, std::int64_t size) {
      return std::span(memory).subspan(offset / 64, static_cast<std::size_t>(size + 63) / 64);
    };
    const auto mark = [&](std::size_t offset, std::int64_t size, std::uint32_t own) {
      if (offset == ArenaMap::absent) return;
      std::ranges::fill(lines(offset, size), own);
    };
    const auto check = [&](std::size_t offset, std::int64_t size, std::uint32_t own,
                           const std::string& what) {
      if (offset == ArenaMap::absent) return;
      for (const std::uint32_t found : lines(offset, size)) ASSERT_EQ(found, own) << what;
    };
    const GradientFlow flow(graph);
    for (const Part& part : program.forward)
      for (const Instruction& step : part) {
        const Node& node = graph.node(step.node);
        for (const NodeId input : node.inputs)
          check(map.values[input.value], bytes(input), 1 + input.value, node.name);
        if (step.work != Work::statistics)
          mark(map.values[node.id.value], bytes(node.id), 1 + node.id.value);
      }
    std::set<NodeId> begun;
    for (const Part& part : program.backward)
      for (const Instruction& step : part) {
        const Node& node = graph.node(step.node);
        if (begun.contains(node.id))
          check(map.gradients[node.id.value], bytes(node.id), 10000 + node.id.value, node.name);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          const NodeId input = node.inputs[i];
          if (step.work != Work::gradient_sums && flow.mode(node.id, i) == GradientMode::write) {
            mark(map.gradients[input.value], bytes(input), 10000 + input.value);
            begun.insert(input);
          }
        }
      }
    EXPECT_GT(begun.size(), 10u);
  }
}

// Two chunks, 20 batch norms in each of the segments together.
TEST(Lower, GroupsOfSamplesNeverMeet) {
  const Graph whole = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}}));
  for (const char* segments : {"step", "block"}) {
    PlanOptions options{.workers = 2, .chunks = {{2}}, .segments = segments};
    const TaskList meeting = lowered(whole, 8, options);
    const TaskList apart = lowered(grouped(whole, 2), 8, options);
    EXPECT_EQ(count(meeting, Phase::combine), 20u);
    EXPECT_EQ(count(meeting, Phase::track), 0u);
    EXPECT_EQ(count(apart, Phase::combine) + count(apart, Phase::combine_gradient), 0u);
    EXPECT_EQ(count(lowered(grouped(whole, 2), 8, options, ListKind::evaluate), Phase::track), 0u);
    EXPECT_EQ(faults(apart), std::vector<std::string>{});
  }
  // Loads, a task for each chunk, one that tracks, then by bucket.
  const TaskList step = lowered(grouped(whole, 2), 8, {.workers = 2, .chunks = {{2}}});
  EXPECT_EQ(count(step, Phase::track), 1u);
  EXPECT_EQ(count(step, Phase::forward), 2u);
  EXPECT_EQ(lowered(grouped(whole, 2), 8, {.workers = 2, .chunks = {{1}}}).tasks.size(), 1u);
}

// Any cut and any live samples: whole groups, no more than a chunk has room for, none left out.
TEST(ShareOut, GroupsStayWholeInAShortBatch) {
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{{32, 18}, {16, 16, 16, 2}, {48, 2}, {50}}) {
    std::vector<Chunk> chunks;
    for (const std::int64_t size : sizes)
      chunks.push_back({ChunkId{static_cast<std::uint32_t>(chunks.size())}, {}, size, 0, {}});
    for (std::int64_t live = 1; live <= 50; ++live) {
      std::int64_t next = 0;
      for (std::size_t c = 0; c < sizes.size(); ++c) {
        const ChunkSpan span = share_out(chunks, live, 16)[c];
        ASSERT_EQ(span.first, next);
        ASSERT_LE(span.count, sizes[c]) << live;
        next += span.count;
        ASSERT_TRUE(next % 16 == 0 || next == live) << live;
      }
      ASSERT_EQ(next, live);
    }
  }
}

TEST(ShareOut, AShortBatchIsSharedInThePlansProportions) {
  const std::vector<Chunk> chunks{{ChunkId{0}, {}, 8, 0, {}}, {ChunkId{1}, {}, 4, 1, {}}};
  const auto spans = share_out(chunks, 6);
  EXPECT_EQ(spans[0].count, 4);
  EXPECT_EQ(spans[1].first, 4);
  EXPECT_EQ(spans[1].count, 2);
  EXPECT_EQ(share_out(chunks, 1)[0].count + share_out(chunks, 1)[1].count, 1);
}

}  // namespace
}  // namespace regatta
