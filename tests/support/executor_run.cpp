#include "support/executor_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backends/cpu/cpu_backend.h"

namespace regatta {

Plan plan_for(const Graph& graph, std::int64_t batch, PlanOptions options) {
  Recipe recipe;
  recipe.model = graph.name();
  recipe.batch = batch;
  options.layout = cpu::preferred_layout();
  Plan plan = make_plan(graph, recipe, options);
  require_valid(plan, graph, batch);
  return plan;
}

namespace {

OptimizerSettings settings_of(const ReferenceSgd& sgd) {
  OptimizerSettings settings;
  settings.learning_rate = sgd.learning_rate;
  settings.momentum = sgd.momentum;
  settings.weight_decay = sgd.weight_decay;
  return settings;
}

}  // namespace

ExecutedRun execute(const Graph& graph, const Plan& plan, const ReferenceInput<float>& input,
                    const ReferenceSgd& sgd, int steps, Precision precision) {
  return execute_by(settings_of(sgd), graph, plan, input, steps, {}, precision);
}

ExecutedRun execute_by(const OptimizerSettings& optimizer, const Graph& graph, const Plan& plan,
                       const ReferenceInput<float>& input, int steps, RankOptions ranks,
                       Precision precision, Precision wire_precision) {
  const auto channels = static_cast<std::size_t>(graph.node(graph.input()).shape.channels());
  Executor executor(graph, plan,
                    {.numbers = {.samples = Dtype::f32,
                                 .precision = precision,
                                 .optimizer = optimizer,
                                 .wire_precision = wire_precision},
                     .normalisation = {1.0f, std::vector<float>(channels, 0.0f),
                                       std::vector<float>(channels, 1.0f)},
                     .training = true,
                     .seed = input.seed,
                     .ranks = std::move(ranks)});
  for (std::uint32_t i = 0; i < graph.parameters().size(); ++i)
    executor.set_parameter(ParameterId{i}, input.parameters[i]);
  for (std::uint32_t i = 0; i < graph.states().size(); ++i)
    executor.set_state(StateId{i}, input.states[i]);
  executor.wait(executor.submit(ListKind::prepare, {}));

  StepInput step;
  step.samples = static_cast<std::int64_t>(input.labels.size());
  const std::size_t elements = input.images.size() / input.labels.size();
  step.load = [&](std::int64_t first, std::int64_t count, std::byte* samples, Target* targets) {
    const auto begin = static_cast<std::size_t>(first);
    std::memcpy(samples, input.images.data() + begin * elements,
                static_cast<std::size_t>(count) * elements * sizeof(float));
    std::transform(input.labels.begin() + first, input.labels.begin() + first + count, targets,
                   Target::of);
  };

  // By then a GPU has met each place of its rings twice: it captures a graph the second time.
  const int settled = 2 * plan.steps_in_flight;
  ExecutedRun run;
  run.logits = executor.wait(executor.submit(ListKind::evaluate, step)).logits;
  std::size_t captures = 0;
  for (int i = 0; i < steps; ++i) {
    step.update = i + 1;
    if (i == settled) captures = executor.graph_captures();
    step.step = static_cast<std::uint64_t>(i);
    const StepResult result = executor.wait(executor.submit(ListKind::train, step));
    run.losses.push_back(std::accumulate(result.losses.begin(), result.losses.end(), 0.0) /
                         static_cast<double>(result.losses.size()));
    if (i > 0) continue;
    for (std::uint32_t p = 0; p < graph.parameters().size(); ++p)
      run.gradients.push_back(executor.gradient(ParameterId{p}));
    for (std::uint32_t s = 0; s < graph.states().size(); ++s)
      run.states.push_back(executor.state(StateId{s}));
  }
  if (steps > settled) run.captures_after_warm_up = executor.graph_captures() - captures;
  for (std::uint32_t p = 0; p < graph.parameters().size(); ++p)
    run.parameters.push_back(executor.parameter(ParameterId{p}));
  return run;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    norm += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

}  // namespace regatta
