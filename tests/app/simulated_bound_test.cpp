// Plans and bounds of the optimizer against the simulator, which knows neither its model nor its
// bound: an error that both of them share would show here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <random>

#include "app/optimized_candidate.h"
#include "app/optimized_plan.h"
#include "app/optimizer_problem.h"
#include "models/models.h"
#include "optimize/model.h"
#include "plan/segments.h"
#include "profile/profile.h"
#include "sim/simulate.h"
#include "tasks/cost_names.h"

namespace regatta::app {
namespace {

constexpr std::uint32_t platforms = 12;
// The model prices a step by straight lines, the simulator plays each task with the runtime's
// overhead and each message: they may be so many times apart.
constexpr double most_apart = 1.25;

Recipe recipe_of(std::int64_t batch) {
  Recipe recipe;
  recipe.model = "lenet5";
  recipe.input = Shape{1, 28, 28};
  recipe.classes = 10;
  recipe.batch = batch;
  return recipe;
}
Recipe small_recipe() { return recipe_of(48); }

NodeOptions plan_options() {
  NodeOptions options;
  options.plan.layout = Layout::blocked16;
  return options;
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

Played played(const Platform& platform, const Plan& plan, const Recipe& recipe = small_recipe(),
              const sim::Profiles& profiles = {}) {
  sim::PreparedFleet fleet(network(), recipe, platform, profiles);
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
    const NodeOptions options = plan_options();
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

// --- workers that hinder each other --------------------------------------------------------------

// As if everything had been timed: each of two busy workers takes `contention` times as long as one
// alone, and both in a team half of that.
std::shared_ptr<const Profile> contended(const Platform& platform, double contention) {
  std::vector<Observation> session;
  const std::int64_t batch = small_recipe().batch;
  for (const int team : {1, 2}) {
    NodeOptions options = plan_options();
    options.plan.team = team;
    const Plan plan =
        plan_for_devices(network(), small_recipe(), platform, {{"n", "cpu", batch}}, options);
    const Blueprint blueprint =
        make_blueprint(network(), plan_of_node(plan, 0), numbers_of(small_recipe()), true);
    const CostNames names(blueprint, small_recipe().data, Pass::train);
    for (const Task& task : lower(blueprint, ListKind::train).tasks)
      for (const Action& action : task.actions)
        for (const std::int64_t samples : {std::int64_t{1}, batch / 4, batch})
          for (const CostPiece& piece : names.pieces(action, samples))
            for (int busy = 1; busy <= 2 / team; ++busy) {
              const double alone =
                  1e-5 * (of_chunk(action.phase) ? static_cast<double>(samples) : 1);
              const double times = team == 2 ? contention / 2 : busy == 2 ? contention : 1;
              for (int i = 0; i < 4; ++i)
                session.push_back({piece.name->signature, piece.size, busy, alone * times});
            }
  }
  auto profile = std::make_shared<Profile>();
  profile->learn(session);
  return profile;
}

TEST(SimulatedBound, HoldsWhereFewerWorkersHinderEachOtherLess) {
  Platform platform;
  platform.name = "hindered";
  PlatformGroup cores;
  cores.name = "cpu";
  cores.count = 2;
  cores.memory = std::int64_t{1} << 33;
  cores.watts = {0, 30};
  cores.costs.profile = "measured";
  PlatformNode node;
  node.name = "n";
  node.groups = {cores};
  platform.nodes = {node};
  NodeOptions one_at_a_time = plan_options();
  one_at_a_time.plan.team = 1;
  one_at_a_time.plan.chunks = {{1}};
  const Plan alone = plan_for_devices(network(), small_recipe(), platform,
                                      {{"n", "cpu", small_recipe().batch}}, one_at_a_time);
  for (const double contention : {1.8, 2.6}) {
    SCOPED_TRACE(contention);
    const sim::Profiles profiles{{"measured", contended(platform, contention)}};
    const Optimized lean =
        optimized_plan(network(), small_recipe(), platform, profiles, plan_options(),
                       {.objective = optimize::Objective::energy});
    EXPECT_LE(lean.bound.energy_j, lean.predicted.energy_j);
    const Played made = played(platform, alone, small_recipe(), profiles);
    EXPECT_LE(lean.bound.energy_j, made.energy_j);
    EXPECT_LE(lean.bound.step_s, made.step_s);
  }
}

// --- every plan of small problems ----------------------------------------------------------------

constexpr std::int64_t few_samples = 6;

// Calls `then` with every division of the samples among the nodes. Of nodes that are alike an
// earlier one has at least as many samples as a later one, so that no plan comes twice.
void for_all_shares(const Platform& platform,
                    const std::function<void(const std::vector<DeviceShare>&)>& then) {
  std::vector<DeviceShare> devices;
  const std::function<void(std::size_t, int, std::int64_t, std::int64_t)> go_on =
      [&](std::size_t kind, int copy, std::int64_t left, std::int64_t most) {
        if (kind == platform.nodes.size()) {
          if (left == 0) then(devices);
          return;
        }
        const PlatformNode& node = platform.nodes[kind];
        if (copy == node.count) return go_on(kind + 1, 0, left, left);
        for (std::int64_t share = 0; share <= std::min(left, most); ++share) {
          if (share > 0) devices.push_back({node_name(node, copy), "cpu", share});
          go_on(kind, copy + 1, left - share, share);
          if (share > 0) devices.pop_back();
        }
      };
  go_on(0, 0, few_samples, few_samples);
}

// Calls `then` with every pipeline over these nodes in this order.
void for_all_borders(const std::vector<std::string>& nodes,
                     const std::function<void(const std::vector<Stage>&)>& then) {
  const auto last = static_cast<std::uint32_t>(segments_named(network(), "block").size()) - 1;
  std::vector<Stage> stages;
  const std::function<void(std::uint32_t)> go_on = [&](std::uint32_t first) {
    const std::size_t left = nodes.size() - stages.size();
    for (std::uint32_t end = left == 1 ? last : first; end + left <= last + 1; ++end) {
      stages.push_back({nodes[nodes.size() - left], "cpu", first, end});
      if (left == 1)
        then(stages);
      else
        go_on(end + 1);
      stages.pop_back();
    }
  };
  go_on(0);
}

// The least that any plan is simulated to take: all shares with every exchange, and pipelines over
// all of the nodes, in any order, in 1, 2, 3 and 6 chunks.
struct Least {
  double step_s = std::numeric_limits<double>::infinity();
  double energy_j = std::numeric_limits<double>::infinity();
  int plans = 0;
  std::string fastest;  // the plan with the least seconds
};

std::string text_of(const Plan& plan) {
  std::string text = plan.stages.empty() ? std::string(node_update_name(plan.update)) : "stages";
  for (const PlanNode& node : plan.nodes) {
    const DeviceGroup& group = node.groups.front();
    text += " " + node.name + ":" + std::to_string(share_of(group)) + "/" +
            std::to_string(group.chunks.size());
  }
  for (const Stage& stage : plan.stages)
    text += " " + stage.node + "=" + std::to_string(stage.first) + "-" + std::to_string(stage.last);
  return text;
}

Least least_simulated(const Platform& platform) {
  Least least;
  const Recipe recipe = recipe_of(few_samples);
  const auto play_out = [&](const Plan& plan) {
    const Played made = played(platform, plan, recipe);
    if (made.step_s < least.step_s) least.fastest = text_of(plan);
    least.step_s = std::min(least.step_s, made.step_s);
    least.energy_j = std::min(least.energy_j, made.energy_j);
    ++least.plans;
  };
  for_all_shares(platform, [&](const std::vector<DeviceShare>& devices) {
    for (const NodeUpdate update : optimize::all_updates()) {
      NodeOptions options = plan_options();
      options.update = update;
      play_out(plan_for_devices(network(), recipe, platform, devices, options));
      if (devices.size() == 1) break;
    }
  });
  std::vector<std::string> nodes = node_names(platform);
  std::ranges::sort(nodes);
  if (nodes.size() < 2) return least;
  do {
    for_all_borders(nodes, [&](const std::vector<Stage>& stages) {
      for (const std::int64_t chunks : {1, 2, 3, 6}) {
        NodeOptions options = plan_options();
        options.plan.chunks = {{chunks}};
        play_out(plan_over_stages(network(), recipe, platform, stages, options));
      }
    });
  } while (std::ranges::next_permutation(nodes).found);
  return least;
}

// How many problems are simulated: REGATTA_SIMULATED_PROBLEMS, else 16. A thousand take minutes.
std::uint32_t problems() {
  const char* wanted = std::getenv("REGATTA_SIMULATED_PROBLEMS");
  return wanted ? static_cast<std::uint32_t>(std::atoi(wanted)) : 16;
}

// A random platform of up to three nodes.
Platform small_platform(Draw& draw) {
  Platform platform = drawn_platform(draw);
  if (platform.node_count() > 3)
    for (PlatformNode& node : platform.nodes) node.count = 1;
  return platform;
}

void tell(const char* what, std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const auto at = [&](double part) {
    return ratios[static_cast<std::size_t>(part * static_cast<double>(ratios.size() - 1))];
  };
  std::printf("%-36s %6.3f %6.3f %6.3f %6.3f\n", what, at(0), at(0.5), at(0.9), at(1));
}

TEST(SimulatedOptimum, LiesBetweenTheBoundAndThePlanThatIsChosen) {
  std::vector<double> time_over, time_gap, energy_over, energy_gap;
  std::string outliers;
  int plans = 0;
  for (std::uint32_t number = 0; number < problems(); ++number) {
    SCOPED_TRACE(number);
    Draw draw(number + 1000);
    const Platform platform = small_platform(draw);
    const Least least = least_simulated(platform);
    plans += least.plans;
    const Recipe recipe = recipe_of(few_samples);
    std::string choice;
    const auto chosen = [&](optimize::Objective objective) {
      const Plan plan =
          optimized_plan(network(), recipe, platform, {}, plan_options(), {.objective = objective})
              .plan;
      choice = text_of(plan);
      return played(platform, plan, recipe);
    };
    const Played fastest = chosen(optimize::Objective::time);
    if (fastest.step_s > 1.05 * least.step_s)
      outliers += "problem " + std::to_string(number) + ": " + choice + " takes " +
                  std::to_string(fastest.step_s / least.step_s) + " times as long as " +
                  least.fastest + "\n";
    const Played leanest = chosen(optimize::Objective::energy);
    const optimize::Bound bound = optimize::lower_bounds(
        optimizer_problem(network(), recipe, platform, {}, plan_options()), {});
    EXPECT_LE(bound.step_s, std::min(least.step_s, fastest.step_s));
    EXPECT_LE(bound.energy_j, std::min(least.energy_j, leanest.energy_j));
    time_over.push_back(fastest.step_s / least.step_s);
    energy_over.push_back(leanest.energy_j / least.energy_j);
    time_gap.push_back(least.step_s / bound.step_s);
    energy_gap.push_back(least.energy_j / bound.energy_j);
  }
  std::fputs(outliers.c_str(), stdout);
  std::printf("%u problems, %d plans simulated          least median    90%%   most\n", problems(),
              plans);
  tell("chosen / best simulated, seconds", time_over);
  tell("chosen / best simulated, joules", energy_over);
  tell("best simulated / bound, seconds", time_gap);
  tell("best simulated / bound, joules", energy_gap);
  for (std::vector<double>* ratios : {&time_over, &energy_over}) {
    std::ranges::sort(*ratios);
    EXPECT_LE((*ratios)[ratios->size() / 2], 1.02);
  }
}

}  // namespace
}  // namespace regatta::app
