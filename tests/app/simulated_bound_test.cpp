// Plans and bounds of the optimizer against the simulator, which knows neither its model nor its
// bound: an error that both of them share would show here.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "app/optimized_plan.h"
#include "app/optimizer_problem.h"
#include "models/models.h"
#include "plan/segments.h"
#include "sim/simulate.h"

namespace regatta::app {
namespace {

constexpr std::uint32_t platforms = 12;
// The model prices a step by straight lines, the simulator plays each task with the runtime's
// overhead and each message: they may be so many times apart.
constexpr double most_apart = 1.25;

Recipe small_recipe() {
  Recipe recipe;
  recipe.model = "lenet5";
  recipe.input = Shape{1, 28, 28};
  recipe.classes = 10;
  recipe.batch = 48;
  return recipe;
}

const Graph& network() {
  static const Graph graph = fuse(build_model("lenet5"));
  return graph;
}

class Draw {
 public:
  explicit Draw(std::uint32_t number) : random_(number) {}
  int whole(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<std::uint32_t>(most - least + 1));
  }
  double real(double least, double most) {
    return least + (most - least) * (static_cast<double>(random_()) / 4294967295.0);
  }

 private:
  std::mt19937 random_;
};

// One to three kinds of nodes with cores, up to two of each, whose costs are certain.
Platform drawn_platform(Draw& draw) {
  Platform platform;
  platform.name = "drawn";
  const int kinds = draw.whole(1, 3);
  for (int k = 0; k < kinds; ++k) {
    PlatformNode node;
    node.name = std::string(1, static_cast<char>('a' + k));
    node.count = draw.whole(1, 2);
    PlatformGroup cores;
    cores.name = "cpu";
    cores.count = draw.whole(1, 4);
    cores.memory = std::int64_t{1} << 33;
    cores.watts.idle = draw.real(0.5, 5);
    cores.watts.active = cores.watts.idle + draw.real(1, 20);
    cores.costs.flops = draw.real(2e9, 5e10);
    cores.costs.uncertainty = 1;
    node.groups = {cores};
    if (draw.whole(0, 1) == 0) node.unused_watts = draw.real(0, 0.5);
    platform.nodes.push_back(node);
  }
  platform.network.link = {draw.real(1e7, 2e9), 1e-6};
  return platform;
}

struct Played {
  double step_s = 0, energy_j = 0;
};

Played played(const Platform& platform, const Plan& plan) {
  sim::PreparedFleet fleet(network(), small_recipe(), platform, {});
  fleet.follow(plan);
  const sim::Simulated made = sim::simulate(fleet.fleet(), {.steps = 4});
  return {made.step_s.front(), made.energy_j.front()};
}

// The names of all nodes, with copies.
std::vector<std::string> node_names(const Platform& platform) {
  std::vector<std::string> names;
  for (const PlatformNode& node : platform.nodes)
    for (int copy = 0; copy < node.count; ++copy)
      names.push_back(node.count == 1 ? node.name : node.name + "-" + std::to_string(copy));
  return names;
}

// Some nodes, in the platform's order, with any shares.
Plan drawn_shares(Draw& draw, const Platform& platform, const NodeOptions& options) {
  std::vector<DeviceShare> devices;
  for (const std::string& name : node_names(platform))
    if (draw.whole(0, 2) > 0) devices.push_back({name, "cpu", 1});
  if (devices.empty()) devices.push_back({node_names(platform).front(), "cpu", 1});
  for (std::int64_t left = small_recipe().batch - std::ssize(devices); left > 0; --left)
    ++devices[static_cast<std::size_t>(draw.whole(0, static_cast<int>(devices.size()) - 1))]
          .samples;
  NodeOptions own = options;
  own.update = draw.whole(0, 1) == 0 ? NodeUpdate::ring : NodeUpdate::server_cpu;
  return plan_for_devices(network(), small_recipe(), platform, devices, own);
}

// Two stages with any border between.
Plan drawn_stages(Draw& draw, const Platform& platform, const NodeOptions& options) {
  const std::vector<std::string> names = node_names(platform);
  const auto last = static_cast<int>(segments_named(network(), "block").size()) - 1;
  const auto border = static_cast<std::uint32_t>(draw.whole(0, last - 1));
  return plan_over_stages(network(), small_recipe(), platform,
                          {{names.front(), "cpu", 0, border},
                           {names.back(), "cpu", border + 1, static_cast<std::uint32_t>(last)}},
                          options);
}

TEST(SimulatedBound, NoPlanIsSimulatedBelowIt) {
  int several = 0;
  for (std::uint32_t number = 0; number < platforms; ++number) {
    SCOPED_TRACE(number);
    Draw draw(number);
    const Platform platform = drawn_platform(draw);
    NodeOptions options;
    options.plan.layout = Layout::blocked16;
    const optimize::Bound bound = optimize::lower_bounds(
        optimizer_problem(network(), small_recipe(), platform, {}, options), {});
    EXPECT_GT(bound.step_s, 0);
    EXPECT_GT(bound.energy_j, 0);
    const auto hold = [&](const char* what, const Played& made) {
      EXPECT_LE(bound.step_s, made.step_s) << what;
      EXPECT_LE(bound.energy_j, made.energy_j) << what;
    };
    for (int i = 0; i < 3; ++i)
      hold("any shares", played(platform, drawn_shares(draw, platform, options)));
    if (node_names(platform).size() > 1) {
      ++several;
      hold("a pipeline", played(platform, drawn_stages(draw, platform, options)));
    }
    for (const optimize::Objective objective :
         {optimize::Objective::time, optimize::Objective::energy}) {
      const Optimized best = optimized_plan(network(), small_recipe(), platform, {}, options,
                                            {.objective = objective});
      const Played simulated = played(platform, best.plan);
      hold("the optimizer's plan", simulated);
      for (const double apart :
           {simulated.step_s / best.modelled.step_s, simulated.energy_j / best.modelled.energy_j}) {
        EXPECT_LE(apart, most_apart);
        EXPECT_GE(apart, 1 / most_apart);
      }
    }
  }
  EXPECT_GT(several, static_cast<int>(platforms) / 2) << "most have an exchange";
}

}  // namespace
}  // namespace regatta::app
