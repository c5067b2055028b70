// A backward whose weight gradients are tasks of their own: what such lists must keep to, and what
// they gain where chunks meet.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/op.h"
#include "models/models.h"
#include "support/error_text.h"
#include "support/executor_run.h"
#include "support/small_networks.h"
#include "tasks/costs.h"
#include "tasks/footprint.h"
#include "tasks/meetings.h"
#include "tasks/play.h"
#include "tasks/policy.h"
#include "tasks/stages.h"
#include "tasks/task_label.h"

namespace regatta {
namespace {

Graph resnet20() { return fuse(build_model("resnet20", {.input = Shape{3, 16, 16}})); }

Blueprint split_blueprint(const Graph& graph, std::int64_t batch, PlanOptions options) {
  options.backward = Backward::split;
  return make_blueprint(graph, plan_for(graph, batch, std::move(options)), {}, true);
}

TEST(SplitBackward, EveryWeightHasOneInstructionAndInputGradientsComeBeforeIt) {
  const Graph graph = resnet20();
  const Program whole = program_of(graph, graph.input(), graph.loss(), Pass::train, true);
  const Program split = program_of(graph, graph.input(), graph.loss(), Pass::train, true, true);
  EXPECT_TRUE(whole.weight_gradients.empty());
  EXPECT_EQ(split.backward.size(), whole.backward.size());
  ASSERT_EQ(split.weight_gradients.size(), split.backward.size());
  std::set<NodeId> weights, inputs;
  for (std::size_t p = 0; p < split.backward.size(); ++p) {
    for (const Instruction& step : split.backward[p]) {
      EXPECT_FALSE(graph.node(step.node).op->splits_backward && step.work == Work::backward);
      if (step.work == Work::input_gradient) inputs.insert(step.node);
    }
    for (const Instruction& step : split.weight_gradients[p]) {
      EXPECT_EQ(step.work, Work::weight_gradient);
      EXPECT_TRUE(weights.insert(step.node).second);
    }
  }
  std::size_t products = 0;
  for (const Node& node : graph.nodes()) products += node.op->splits_backward;
  EXPECT_EQ(weights.size(), products);
  EXPECT_EQ(inputs.size(), products - 1) << "the first convolution has no input gradient to give";
}

// The number of tasks that access a buffer of this kind.
std::size_t touching(const TaskList& list, BufferKind kind, bool weight_gradients) {
  return static_cast<std::size_t>(std::ranges::count_if(list.tasks, [&](const Task& task) {
    return only_weight_gradients(task) == weight_gradients &&
           std::ranges::any_of(task.accesses, [&](const Access& access) {
             return list.buffers[access.buffer].kind == kind;
           });
  }));
}

TEST(SplitBackward, ListsAreSoundAndDoAsMuchWorkHoweverTheyAreCut) {
  for (const char* model : {"lenet5", "resnet20"})
    for (const char* segments : {"step", "block", "op", "3"})
      for (const std::int64_t chunks : {1, 2, 3})
        for (const Reduction reduction : {Reduction::slots, Reduction::redux, Reduction::loop})
          for (const ListKind job : {ListKind::prepare, ListKind::train, ListKind::evaluate,
                                     ListKind::middle, ListKind::last}) {
            const Graph graph = fuse(build_model(model));
            PlanOptions options{.workers = 2,
                                .chunks = std::vector{chunks},
                                .segments = segments,
                                .reduction = reduction};
            const TaskList whole =
                lower(make_blueprint(graph, plan_for(graph, 6, options), {}, true), job);
            const TaskList split = lower(split_blueprint(graph, 6, options), job);
            EXPECT_EQ(faults(split), std::vector<std::string>{});
            EXPECT_EQ(touching(split, BufferKind::arena, true), 0u);
            EXPECT_EQ(touching(split, BufferKind::parameters, true), 0u);
            const auto flops = [](const TaskList& list) {
              double sum = 0;
              for (const Task& task : list.tasks) sum += task.flops;
              return sum;
            };
            EXPECT_NEAR(flops(split), flops(whole), 1e-9 * flops(whole));
          }
}

TEST(SplitBackward, NoOtherWorkOnAChunkWaitsForItsWeightGradients) {
  const Graph graph = resnet20();
  const TaskList list =
      lower(split_blueprint(graph, 6, {.workers = 2, .chunks = std::vector{2L}}), ListKind::train);
  std::size_t waits = 0;
  for (const auto& [task, on] : Dependencies().follow(list, 0, 0)) {
    if (!only_weight_gradients(list.tasks[static_cast<std::size_t>(on)])) continue;
    ++waits;
    const Phase phase = list.tasks[static_cast<std::size_t>(task)].actions.front().phase;
    EXPECT_TRUE(phase == Phase::reduce || phase == Phase::update) << phase_name(phase);
  }
  EXPECT_GT(waits, 20u);
}

TEST(SplitBackward, ChunksOfALaneAddTheirWeightGradientsInTheirOrder) {
  const Graph graph = resnet20();
  for (const Reduction reduction : {Reduction::slots, Reduction::loop}) {
    Plan plan = plan_for(graph, 6,
                         {.workers = 3,
                          .chunks = std::vector{3L},
                          .reduction = reduction,
                          .backward = Backward::split});
    plan.nodes.front().groups.front().lanes = 1;
    const TaskList list = lower(make_blueprint(graph, plan, {}, true), ListKind::train);
    std::map<std::uint32_t, std::uint32_t> last;  // by bucket: the chunk that wrote it last
    for (const Task& task : list.tasks) {
      if (!only_weight_gradients(task)) continue;
      for (const Access& access : task.accesses) {
        const Buffer& buffer = list.buffers[access.buffer];
        if (buffer.kind != BufferKind::gradient) continue;
        const std::uint32_t chunk = task.actions.front().chunk.value;
        EXPECT_EQ(access.mode, chunk == 0 ? Mode::write : Mode::read_write);
        const auto [found, fresh] = last.try_emplace(buffer.first, chunk);
        if (!fresh) {
          EXPECT_EQ(chunk, found->second + 1);
          found->second = chunk;
        }
      }
    }
    EXPECT_GT(last.size(), 10u);
  }
}

TEST(SplitBackward, ABucketOfWeightsIsOfOnePartOfBackward) {
  const Graph graph = resnet20();
  const Blueprint blueprint = split_blueprint(graph, 6, {.workers = 2, .chunks = std::vector{2L}});
  const Program& program = blueprint.segments.front().train;
  std::map<NodeId, std::size_t> part_of_node;
  for (std::size_t p = 0; p < program.weight_gradients.size(); ++p)
    for (const Instruction& step : program.weight_gradients[p]) part_of_node[step.node] = p;
  for (const Bucket& bucket : blueprint.buckets) {
    std::set<std::size_t> parts;
    std::size_t apart = 0;
    for (const NodeId node : bucket.nodes)
      if (const auto found = part_of_node.find(node); found != part_of_node.end()) {
        parts.insert(found->second);
        ++apart;
      }
    EXPECT_LE(parts.size(), 1u);
    EXPECT_TRUE(apart == 0 || apart == bucket.nodes.size());
  }
}

TEST(SplitBackward, WhatWeightGradientsReadIsCountedAsMemory) {
  const Graph graph = resnet20();
  PlanOptions options{.workers = 2, .chunks = std::vector{2L}};
  const auto bytes = [](const Blueprint& blueprint) {
    const TaskList list = lower(blueprint, ListKind::train);
    return peak_bytes(blueprint, footprints(blueprint, {&list}), GroupId{0});
  };
  const Blueprint split = split_blueprint(graph, 6, options);
  const Blueprint whole = make_blueprint(graph, plan_for(graph, 6, options), {}, true);
  double gradients = 0;  // of all that convolutions and the dense layer put out
  for (const Node& node : graph.nodes())
    if (node.op->splits_backward)
      gradients += static_cast<double>(split.forms[0][node.id.value].bytes(6));
  const auto more = static_cast<double>(bytes(split)) - static_cast<double>(bytes(whole));
  EXPECT_GT(more, 0.5 * gradients);
  EXPECT_LT(more, 1.5 * gradients);
}

TEST(SplitBackward, WeightGradientsAreLessUrgentThanTheWayBack) {
  class Flops final : public TaskCosts {
   public:
    Estimate of(const Task& task, int) const override {
      return {task.flops, task.flops, task.flops};
    }
    RuntimeCosts runtime() const override { return {}; }
  };
  const Graph graph = resnet20();
  const TaskList list =
      lower(split_blueprint(graph, 6, {.workers = 2, .chunks = std::vector{2L}}), ListKind::train);
  const std::vector<double> rank = ranks(list, Flops{}, 2);
  std::map<std::pair<Phase, std::uint32_t>, std::vector<double>> by_part;
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    for (const Action& action : list.tasks[t].actions)
      by_part[{action.phase, action.part}].push_back(rank[t]);
  std::uint32_t parts = 0;
  while (by_part.contains({Phase::backward, parts})) ++parts;
  ASSERT_GT(parts, 15u);
  // Behind the last parts there is as little to come as behind their weight gradients.
  for (std::uint32_t part = 0; part + 3 < parts; ++part)
    if (by_part.contains({Phase::weight_gradient, part})) {
      EXPECT_LT(std::ranges::max(by_part[{Phase::weight_gradient, part}]),
                std::ranges::min(by_part[{Phase::backward, part + 1}]))
          << part;
    }
}

// A convolution and a norm, twice, and a dense layer.
Graph two_norms() {
  return build({"two_norms", {3, 8, 8}, [](NetBuilder& n) {
                  NodeId x = n.conv("a", n.input(), {.channels = 16, .kernel = 3, .bias = false});
                  x = n.conv("c", n.batch_norm("b", x),
                             {.channels = 16, .kernel = 3, .bias = false});
                  return head(n, n.batch_norm("d", x));
                }});
}

// An input gradient or a weight gradient takes a second on the first chunk, of 2 samples, and three
// on the second, of 6; both together, without a split, two and six. All else takes no time.
class UnevenChunks final : public TaskCosts {
 public:
  explicit UnevenChunks(const Blueprint& blueprint) : blueprint_(blueprint) {}
  Estimate of(const Task& task, int) const override {
    double seconds = 0;
    for (const Action& action : task.actions) {
      if (action.phase != Phase::backward && action.phase != Phase::weight_gradient) continue;
      for (const Instruction& step :
           part_of(blueprint_.segments[action.segment.value].train, action)) {
        if (!blueprint_.graph.node(step.node).op->splits_backward) continue;
        const bool both = step.work == Work::backward && blueprint_.flow.passes_on(step.node);
        seconds += (both ? 2 : 1) *
                   static_cast<double>(blueprint_.chunks[action.chunk.value].capacity) / 2;
      }
    }
    return {seconds, seconds, seconds};
  }
  RuntimeCosts runtime() const override { return {0, 0, 0, 0, 0, 0, 0, 0}; }

 private:
  const Blueprint& blueprint_;
};

TEST(SplitBackward, FillsTheGapsAtMeetingsOfUnevenChunks) {
  const Graph graph = two_norms();
  Plan plan = plan_for(graph, 8, {.workers = 2, .chunks = std::vector{2L, 6L}});
  plan.steps_in_flight = 1;
  const auto step_seconds = [&](Backward backward) {
    plan.backward = backward;
    const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
    return play(blueprint, lower(blueprint, ListKind::train), UnevenChunks(blueprint)).step_seconds;
  };
  // Whole, every meeting waits for the second chunk: 6 for the dense layer, 6 for the second
  // convolution, 3 for the first, which has no input gradient.
  EXPECT_NEAR(step_seconds(Backward::whole), 6 + 6 + 3, 1e-9);
  // Split, meetings wait for input gradients alone, 3 and 3. The first worker is idle from 2 to 3;
  // of the 20 seconds of work in all, the workers then have 10 and 11.
  EXPECT_NEAR(step_seconds(Backward::split), 11, 1e-9);
}

TEST(SplitBackward, MeetingsDoNotWaitForWeightGradientsAndChunksOweThem) {
  const Graph graph = two_norms();
  Plan plan = plan_for(graph, 8,
                       {.workers = 2, .chunks = std::vector{2L, 6L}, .backward = Backward::split});
  const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  const UnevenChunks costs(blueprint);
  double first = 0, last = 0;
  for (const Meeting& meeting : meetings(blueprint, list, costs)) {
    first += meeting.first;
    last += meeting.last;
  }
  EXPECT_NEAR(first, 2, 1e-9);
  EXPECT_NEAR(last, 6, 1e-9);
  EXPECT_EQ(chunk_seconds(blueprint, list, costs), (std::vector<double>{5, 15}));
}

TEST(SplitBackward, HalvesThatWereNotMeasuredShareTheCostOfTheWhole) {
  const std::string data = "synth:3x16x16/10@64";
  const Graph graph = resnet20();
  const PlanOptions options{.workers = 2, .chunks = std::vector{2L}};
  Plan plan = plan_for(graph, 6, options);
  plan.gather_phases = false;
  const Blueprint whole = make_blueprint(graph, plan, {}, true);
  plan.backward = Backward::split;
  const Blueprint split = make_blueprint(graph, plan, {}, true);
  const auto learn = [&](Profile& profile, const Blueprint& blueprint, double each) {
    std::vector<Observation> session;
    const CostNames names(blueprint, data, Pass::train);
    for (const Task& task : lower(blueprint, ListKind::train).tasks)
      for (const Action& action : task.actions)
        if (runs_part(action.phase))
          for (const CostPiece& piece : names.pieces(action, 3))
            for (int i = 0; i < 4; ++i)
              session.push_back({piece.name->signature, piece.size, 1, each});
    profile.learn(session);
  };
  const auto back = [&](const Blueprint& blueprint, const Profile& profile) {
    const ProfileCosts costs(blueprint, std::make_shared<Profile>(profile), data);
    double seconds = 0;
    for (const Task& task : lower(blueprint, ListKind::train).tasks) {
      const Phase phase = task.actions.front().phase;
      if (phase == Phase::backward || phase == Phase::weight_gradient)
        seconds += costs.of(task, 1).seconds;
    }
    return seconds;
  };
  Profile profile;
  learn(profile, whole, 1e-3);
  EXPECT_NEAR(back(split, profile), back(whole, profile), 1e-6 * back(whole, profile));
  const TaskList list = lower(split, ListKind::train);
  const ProfileCosts costs(split, std::make_shared<Profile>(profile), data);
  EXPECT_GT(costs.measured_shares(list, 1).near_size, 0.95);
  // Once the halves are measured, their own costs count.
  learn(profile, split, 1e-3);
  EXPECT_GT(back(split, profile), 1.2 * back(whole, profile));
}

TEST(SplitBackward, TasksAreLabelledByTheirPhaseSegmentPartAndChunk) {
  const Graph graph = resnet20();
  const TaskList list = lower(
      split_blueprint(graph, 6, {.workers = 2, .chunks = std::vector{2L}, .segments = "block"}),
      ListKind::train);
  const auto found = std::ranges::find_if(list.tasks, only_weight_gradients);
  ASSERT_NE(found, list.tasks.end());
  const TaskLabel label = label_of(*found);
  EXPECT_EQ(label.phases, "weight_gradient");
  EXPECT_GE(label.segment, 0);
  EXPECT_GE(label.part, 0);
  EXPECT_EQ(label.chunk, 0);
  EXPECT_LT(found->priority, 0);
}

TEST(SplitBackward, StagesOfAPipelineHaveItToo) {
  const Graph graph = fuse(build_model("lenet5"));
  Plan plan = plan_for(
      graph, 8,
      {.workers = 1, .chunks = std::vector{2L}, .segments = "2", .backward = Backward::split});
  DeviceGroup second = plan.nodes.front().groups.front();
  second.name = "other";
  plan.nodes.front().groups.push_back(second);
  plan.stages = {{"here", "cpu", 0, 0}, {"here", "other", 1, 1}};
  plan.gather_phases = false;
  const TaskList list = lower_stages(plan, stage_blueprints(graph, plan, {}));
  EXPECT_EQ(faults(list), std::vector<std::string>{});
  EXPECT_EQ(std::ranges::count_if(list.tasks, only_weight_gradients), 4);
}

TEST(SplitBackward, IsRefusedOnGpus) {
  const Graph graph = fuse(build_model("lenet5"));
  const std::string text = error_text([&] {
    plan_for(graph, 8, {.workers = 2, .backward = Backward::split, .devices = {DeviceKind::cuda}});
  });
  EXPECT_NE(text.find("GPUs such as group 'cuda' do not do: use --backward whole"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace regatta
