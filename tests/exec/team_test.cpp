// Teams of threads: which CPUs they run on, and that they compute what one thread computes, the
// same bits each time.
#include <gtest/gtest.h>

#include "exec/teams.h"
#include "models/models.h"
#include "support/executed_parity.h"
#include "support/small_networks.h"

namespace regatta {
namespace {

using Cpus = std::vector<int>;

TEST(TeamCpus, AreDistinctAndInARow) {
  EXPECT_EQ(team_cpus(Cpus{0, 1, 2, 3, 4, 5, 6, 7}, 2, 4),
            (std::vector<Cpus>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(team_cpus(Cpus{0, 1, 2, 3, 4}, 2, 2), (std::vector<Cpus>{{0, 1}, {2, 3}}));
}

TEST(TeamCpus, AreThoseTheProcessMayUse) {
  EXPECT_EQ(team_cpus(Cpus{3, 8, 9, 20}, 2, 2), (std::vector<Cpus>{{3, 8}, {9, 20}}));
}

TEST(TeamCpus, AreNotFixedWhereTheyDoNotSuffice) {
  EXPECT_TRUE(team_cpus(Cpus{0, 1}, 1, 4).empty());
  EXPECT_TRUE(team_cpus(Cpus{0, 1, 2}, 2, 2).empty());
  EXPECT_TRUE(team_cpus({}, 1, 1).empty());
}

TEST(TeamCpus, BindAThread) {
  const Cpus before = allowed_cpus();
  ASSERT_FALSE(before.empty());
  stay_on(Cpus{before.back()});
  EXPECT_EQ(allowed_cpus(), Cpus{before.back()});
  stay_on(before);
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(TeamCpus, OthersAreThoseNotTaken) {
  EXPECT_EQ(others_of(Cpus{0, 1, 2, 3}, Cpus{1, 3, 7}), (Cpus{0, 2}));
  EXPECT_TRUE(others_of(Cpus{0, 1}, Cpus{1, 0}).empty());
}

TEST(TeamCpus, AThreadThatLeavesSomeToOthersMayReturn) {
  const Cpus before = allowed_cpus();
  leave_to_others(Cpus{before.front()});
  EXPECT_EQ(allowed_cpus(), before);
  leave_to_others(before);  // there is nowhere to go
  EXPECT_EQ(allowed_cpus(), before);
}

PlanOptions teams_of(int team, std::vector<std::int64_t> chunks) {
  PlanOptions options;
  options.workers = 4;
  options.team = team;
  options.chunks = std::move(chunks);
  return options;
}

TEST(Team, IsAsNearToFloat64AsPyTorchsFloat32) {
  for (const char* model : {"tiny", "lenet5"})
    for (const int team : {2, 4}) {
      SCOPED_TRACE(std::string(model) + ", teams of " + std::to_string(team));
      expect_parity(model, teams_of(team, {3, 5}));
    }
  expect_parity("resnet18", teams_of(2, {1}));
}

// Values large enough that a team shares every loop.
std::vector<SmallNetwork> large_networks() {
  const Shape image{3, 16, 16};
  const auto stem = [](NetBuilder& n, std::int64_t channels) {
    return n.conv("stem", n.input(), {.channels = channels, .kernel = 3, .padding = 1});
  };
  return {
      {"batch_norms",  // one block of channels, several, and features
       image,
       [=](NetBuilder& n) {
         // Without biases: before a batch norm their gradients are rounding errors alone.
         NodeId x = n.conv("stem", n.input(), {.channels = 8, .kernel = 3, .bias = false});
         x = n.relu(n.batch_norm("a", x));
         x = n.conv("b", x, {.channels = 72, .kernel = 3, .padding = 1, .bias = false});
         x = n.relu(n.add(n.batch_norm("c", x), x));
         return head(n, n.relu(n.batch_norm(
                            "d", n.dense("e", n.global_average_pool(x), 600, {.bias = false}))));
       }},
      {"other_norms", image,
       [=](NetBuilder& n) {
         return head(n, n.dropout(n.layer_norm("a", n.local_response_norm(stem(n, 20), {}))));
       }},
      {"activations", image,
       [=](NetBuilder& n) {
         NodeId x = n.relu6(n.leaky_relu(n.tanh(n.gelu(stem(n, 12)))));
         return head(n, n.sigmoid(n.relu(n.dense("a", x, 500))));
       }},
      {"pools", image,
       [=](NetBuilder& n) {
         const NodeId x = stem(n, 21);
         const NodeId y = n.average_pool(x, {.kernel = 3, .stride = 1, .padding = 1});
         const NodeId z = n.max_pool(x, {.kernel = 3, .stride = 1, .padding = 1});
         const NodeId all = n.concat({x, y, n.relu(n.add(y, z))});
         return head(n, n.add(n.dense("a", n.global_average_pool(all), 30),
                              n.dense("b", n.adaptive_average_pool(all, 3), 30)));
       }},
      {"groups", image,
       [=](NetBuilder& n) {
         NodeId x = n.conv("a", stem(n, 18), {.channels = 12, .kernel = 3, .groups = 6});
         return head(n, n.relu(n.conv("b", x, {.channels = 12, .kernel = 3, .groups = 12})));
       }},
  };
}

const ReferenceSgd sgd{.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 1e-4};

TEST(Team, ComputesWhatOneThreadComputes) {
  for (const SmallNetwork& network : large_networks()) {
    const Graph graph = build(network);
    const ReferenceInput<float> input = make_input<float>(graph, 9);
    const ExecutedRun alone = execute(graph, plan_for(graph, 9, teams_of(1, {1})), input, sgd, 2);
    for (const int team : {2, 4})
      for (const std::vector<std::int64_t>& chunks :
           {std::vector<std::int64_t>{1}, std::vector<std::int64_t>{5, 4}}) {
        SCOPED_TRACE(std::string(network.name) + ", teams of " + std::to_string(team));
        const ExecutedRun run =
            execute(graph, plan_for(graph, 9, teams_of(team, chunks)), input, sgd, 2);
        EXPECT_NEAR(run.losses[1], alone.losses[1], 1e-5 * std::abs(alone.losses[1]));
        EXPECT_LT(relative_distance(run.logits, alone.logits), 1e-5);
        for (std::size_t p = 0; p < run.gradients.size(); ++p)
          EXPECT_LT(relative_distance(run.gradients[p], alone.gradients[p]), 1e-4)
              << graph.parameters()[p].name;
        for (std::size_t s = 0; s < run.states.size(); ++s)
          EXPECT_LT(relative_distance(run.states[s], alone.states[s]), 1e-5);
      }
  }
}

TEST(Team, HasTheSameBitsEachTime) {
  const Graph graph = build(large_networks().front());
  const ReferenceInput<float> input = make_input<float>(graph, 9);
  for (const int team : {2, 4}) {
    const Plan plan = plan_for(graph, 9, teams_of(team, {5, 4}));
    const ExecutedRun first = execute(graph, plan, input, sgd, 3);
    for (int repetition = 0; repetition < 3; ++repetition) {
      const ExecutedRun run = execute(graph, plan, input, sgd, 3);
      ASSERT_EQ(run.losses, first.losses) << "teams of " << team;
      ASSERT_EQ(run.parameters, first.parameters) << "teams of " << team;
    }
  }
}

TEST(Team, SharesOutTheLoading) {
  const Graph graph = fuse(build_model("tiny"));
  const Plan plan = plan_for(graph, 8, teams_of(4, {1}));
  Executor executor(graph, plan,
                    {.numbers = {}, .normalisation = {1.0f, {0.0f}, {1.0f}}, .training = true});
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  StepInput step;
  step.samples = 8;
  step.load = [&](std::int64_t first, std::int64_t count, std::byte* samples, Target* targets) {
    std::fill_n(samples, static_cast<std::size_t>(count) * 28 * 28, std::byte{1});
    std::fill_n(targets, count, Target{});
    const std::lock_guard lock(mutex);
    spans.emplace_back(first, count);
  };
  executor.wait(executor.submit(ListKind::prepare, {}));
  executor.wait(executor.submit(ListKind::train, step));
  std::ranges::sort(spans);
  EXPECT_EQ(spans,
            (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 2}, {2, 2}, {4, 2}, {6, 2}}));
}

}  // namespace
}  // namespace regatta
