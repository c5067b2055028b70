// Whatever the granularity, the numbers are those of one batch: random cuts, gatherings, lanes,
// reductions and workers against the reference in double.
#include <gtest/gtest.h>

#include <random>

#include "parity/formula.h"
#include "support/executor_run.h"
#include "support/small_networks.h"
#include "tasks/placement.h"
#include "tasks/play.h"

namespace regatta {
namespace {

constexpr int steps = 2;
const ReferenceSgd sgd{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 1e-3};

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : numbers_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution(least, most)(numbers_);
  }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, std::ssize(choices) - 1))];
  }
  std::vector<std::int64_t> sizes(std::int64_t total) {
    std::vector<std::int64_t> made;
    while (total > 0) {
      made.push_back(between(1, total));
      total -= made.back();
    }
    std::ranges::shuffle(made, numbers_);
    return made;
  }

 private:
  std::mt19937 numbers_;
};

Plan random_plan(Dice& dice, const Graph& graph, std::int64_t batch,
                 const std::vector<Reduction>& reductions) {
  PlanOptions options;
  options.workers = static_cast<int>(dice.between(1, 4));
  options.chunks = dice.sizes(batch);
  if (options.chunks->size() == 1) options.chunks = {1};
  options.segments = dice.one_of<std::string>(
      {"op", "block", "step", std::to_string(dice.between(1, std::ssize(graph.nodes())))});
  options.reduction = dice.one_of(reductions);
  Plan plan = plan_for(graph, batch, options);
  DeviceGroup& group = plan.nodes.front().groups.front();
  group.lanes = static_cast<int>(dice.between(1, std::ssize(group.chunks)));
  group.team = static_cast<int>(dice.one_of<std::int64_t>({1, 1, 2, 3}));
  plan.gather_phases = dice.between(0, 3) > 0;
  plan.gather_loads = dice.between(0, 1) > 0;
  plan.cpus = static_cast<int>(dice.between(0, 1));  // none to spare, or plenty
  plan.bucket_bytes = dice.one_of<std::int64_t>({1, 4096, std::int64_t{4} << 20});
  plan.steps_in_flight = static_cast<int>(dice.between(1, 3));
  plan.scheduler = dice.one_of<std::string>({"regatta", "regatta", "eager", "lws"});
  plan.backward = dice.one_of<Backward>({Backward::whole, Backward::split});
  return plan;
}

template <class T>
Tensors<T> reference_parameters(const Graph& graph, std::int64_t batch) {
  ReferenceInput<T> input = make_input<T>(graph, batch);
  Tensors<T> velocities;
  for (input.step = 0; input.step < steps; ++input.step) {
    ReferenceResult<T> result = reference_run(graph, input);
    sgd.step(input.parameters, result.parameter_gradients, velocities);
    input.states = std::move(result.states);
  }
  return input.parameters;
}

double distance(const auto& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

class GranularityFuzz : public testing::TestWithParam<std::uint32_t> {};

TEST_P(GranularityFuzz, ParametersAreTheReferences) {
  Dice dice(GetParam());
  const std::vector<SmallNetwork> networks = small_networks();
  const Graph graph = build(dice.one_of(networks));
  const std::int64_t batch = dice.between(1, 13);
  const Plan plan =
      random_plan(dice, graph, batch, {Reduction::slots, Reduction::redux, Reduction::loop});
  SCOPED_TRACE(graph.name() + " " + to_json(plan, graph).dump());
  const auto exact = reference_parameters<double>(graph, batch);
  const auto single = reference_parameters<float>(graph, batch);
  const ExecutedRun run = execute(graph, plan, make_input<float>(graph, batch), sgd, steps);
  for (std::size_t p = 0; p < exact.size(); ++p)
    EXPECT_LE(distance(run.parameters[p], exact[p]), 3 * distance(single[p], exact[p]) + 2e-5)
        << graph.parameters()[p].name;
}

TEST_P(GranularityFuzz, WorkersAndSchedulersHaveNoSayInTheBits) {
  Dice dice(1000 + GetParam());
  const std::vector<SmallNetwork> networks = small_networks();
  const Graph graph = build(dice.one_of(networks));
  const std::int64_t batch = dice.between(2, 13);
  Plan plan = random_plan(dice, graph, batch, {Reduction::slots, Reduction::loop});
  plan.deterministic = true;
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  const ExecutedRun first = execute(graph, plan, input, sgd, steps);
  for (const int workers : {1, 3}) {
    plan.nodes.front().groups.front().workers = workers;
    plan.scheduler = workers == 1 ? "lws" : "regatta";
    SCOPED_TRACE(graph.name() + " " + to_json(plan, graph).dump());
    EXPECT_TRUE(execute(graph, plan, input, sgd, steps).parameters == first.parameters);
  }
}

TEST_P(GranularityFuzz, WhoLoadsAndWhoSubmitsHasNoSayInTheBits) {
  Dice dice(2000 + GetParam());
  const std::vector<SmallNetwork> networks = small_networks();
  const Graph graph = build(dice.one_of(networks));
  const std::int64_t batch = dice.between(2, 13);
  Plan plan = random_plan(dice, graph, batch, {Reduction::slots, Reduction::loop});
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  plan.gather_loads = false;
  const ExecutedRun ahead = execute(graph, plan, input, sgd, steps);
  plan.gather_loads = true;
  SCOPED_TRACE(graph.name() + " " + to_json(plan, graph).dump());
  const ExecutedRun gathered = execute(graph, plan, input, sgd, steps);
  EXPECT_TRUE(gathered.parameters == ahead.parameters);
  EXPECT_TRUE(gathered.losses == ahead.losses);
  plan.cpus = 1 - plan.cpus;
  const ExecutedRun otherwise = execute(graph, plan, input, sgd, steps);
  EXPECT_TRUE(otherwise.parameters == ahead.parameters);
  EXPECT_TRUE(otherwise.losses == ahead.losses);
}

// Everything that is placed waits for its turn and at its gate, with several steps on their way.
TEST_P(GranularityFuzz, PlacementHasNoSayInTheBits) {
  Dice dice(3000 + GetParam());
  const std::vector<SmallNetwork> networks = small_networks();
  const Graph graph = build(dice.one_of(networks));
  const std::int64_t batch = dice.between(2, 13);
  Plan plan = random_plan(dice, graph, batch, {Reduction::slots, Reduction::loop});
  plan.scheduler = own_scheduler;
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  const ExecutedRun free = execute(graph, plan, input, sgd, steps);
  const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  std::vector<RanAt> played;
  for (const PlayedTask& task :
       play(blueprint, list, ProfileCosts(blueprint, nullptr, "none")).tasks)
    played.push_back({task.worker, task.start});
  for (const Placement placement : {Placement::hybrid, Placement::fixed}) {
    plan.placement = placement;
    if (placement == Placement::fixed) plan.order = order_of(played, workers_of(plan).size());
    require_valid(plan, graph, batch);
    SCOPED_TRACE(graph.name() + " " + to_json(plan, graph).dump());
    const ExecutedRun placed = execute(graph, plan, input, sgd, steps);
    EXPECT_TRUE(placed.parameters == free.parameters);
    EXPECT_TRUE(placed.losses == free.losses);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, GranularityFuzz, testing::Range(0u, 12u));

}  // namespace
}  // namespace regatta
