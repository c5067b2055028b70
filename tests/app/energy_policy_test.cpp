// Plans with a pace beside the rule by which StarPU's dmda weighs energy, on one node whose cores
// are unequal, both carried out by the simulator:
//   regatta_tests --gtest_filter='EnergyPolicy.*'
// prints the table of docs/optimizer.md.
#include <gtest/gtest.h>

#include <cmath>
#include <queue>

#include "app/node_plan.h"
#include "models/models.h"
#include "sim/simulate.h"
#include "tasks/dependencies.h"
#include "tasks/placement.h"

namespace regatta::app {
namespace {

constexpr double microseconds = 1e6;

// Four fast cores that need 3 J for a second of work, four that take twice as long for 1.2 J.
Platform unequal_cores() {
  Platform platform;
  platform.name = "unequal cores";
  PlatformGroup cores;
  cores.name = "cpu";
  cores.count = 8;
  cores.memory = std::int64_t{1} << 34;
  cores.watts = {0.1, 3.1};
  cores.slow_cores = {.count = 4, .slow = 2, .active_watts = 0.7};
  cores.costs = {.flops = 2e10, .uncertainty = 1};
  PlatformNode node;
  node.name = "n";
  node.groups = {cores};
  platform.nodes = {node};
  return platform;
}

// Which worker runs which task, and when, by dmda: a task that becomes ready goes to the worker
// with the least sum of its end in microseconds and gamma times its joules. Costs are known
// exactly, and data is at hand everywhere.
std::vector<RanAt> by_dmda(const sim::RankKind& kind, double gamma) {
  const TaskList& list = *kind.list;
  const std::vector<WorkerPower> powers = powers_of(kind.blueprint->plan);
  std::vector<std::vector<std::size_t>> next(list.tasks.size());
  std::vector<int> waits(list.tasks.size(), 0);
  for (const auto& [task, on] : Dependencies().follow(list, 0, 0)) {
    next[static_cast<std::size_t>(on)].push_back(static_cast<std::size_t>(task));
    ++waits[static_cast<std::size_t>(task)];
  }
  std::vector<double> free(powers.size(), 0);  // when a worker has done all that it was given
  std::vector<RanAt> ran(list.tasks.size());
  using End = std::pair<double, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  const auto give = [&](std::size_t task, double now) {
    const double seconds =
        kind.costs->of(list.tasks[task], static_cast<int>(powers.size())).seconds;
    std::size_t best = 0;
    double least = INFINITY;
    for (std::size_t w = 0; w < powers.size(); ++w) {
      const double length = powers[w].slow * seconds;
      const double fitness =
          microseconds * (std::max(now, free[w]) + length) + gamma * powers[w].watts * length;
      if (fitness < least) {
        least = fitness;
        best = w;
      }
    }
    ran[task] = {static_cast<int>(best), std::max(now, free[best])};
    free[best] = ran[task].start + powers[best].slow * seconds;
    ends.emplace(free[best], task);
  };
  for (std::size_t t = 0; t < waits.size(); ++t)
    if (waits[t] == 0) give(t, 0);
  while (!ends.empty()) {
    const auto [now, task] = ends.top();
    ends.pop();
    for (const std::size_t after : next[task])
      if (--waits[after] == 0) give(after, now);
  }
  return ran;
}

struct Outcome {
  double step_s = 0, energy_j = 0;
};

class Subject {
 public:
  Subject(const std::string& model, std::int64_t batch) : graph_(fuse(build_model(model))) {
    recipe_.model = model;
    recipe_.batch = batch;
    NodeOptions options;
    options.plan.layout = Layout::blocked16;
    options.plan.segments = "block";
    options.plan.chunks = {{32}};
    options.plan.team = 1;
    plan_ = plan_for_devices(graph_, recipe_, platform_, {{"n", "cpu", batch}}, options);
  }

  Outcome paced(double pace_s) const {
    Plan plan = plan_;
    plan.pace_s = pace_s;
    return outcome(plan);
  }
  Outcome dmda(double gamma) const {
    sim::PreparedFleet fleet(graph_, recipe_, platform_, {});
    fleet.follow(plan_);
    Plan plan = plan_;
    plan.placement = Placement::fixed;
    plan.order = order_of(by_dmda(fleet.fleet().kinds.front(), gamma), workers_of(plan).size());
    return outcome(plan);
  }

 private:
  Outcome outcome(const Plan& plan) const {
    require_valid(plan, graph_, recipe_.batch);
    sim::PreparedFleet fleet(graph_, recipe_, platform_, {});
    fleet.follow(plan);
    const sim::Simulated made = sim::simulate(fleet.fleet(), {.steps = 12});
    return {made.step_s.front(), made.energy_j.front()};
  }

  Platform platform_ = unequal_cores();
  Graph graph_;
  Recipe recipe_;
  Plan plan_;
};

// The least joules of the outcomes that keep a limit of time.
double least_within(const std::vector<Outcome>& all, double limit) {
  double least = INFINITY;
  for (const Outcome& each : all)
    if (each.step_s <= limit) least = std::min(least, each.energy_j);
  return least;
}

// dmda's weight is chosen for each limit, knowing the outcome: no user could choose a better one.
TEST(EnergyPolicy, APaceIsAboutAsLeanAsTheBestWeightOfDmdaOrLeaner) {
  int leaner = 0;
  for (const auto& [model, batch] :
       {std::pair<std::string, std::int64_t>{"lenet5", 256}, {"resnet20", 64}}) {
    const Subject subject(model, batch);
    const double fastest = subject.paced(0).step_s;
    std::vector<Outcome> paced{subject.paced(0)}, dmda{subject.dmda(0)};
    for (double times = 1.02; times < 3; times *= 1.06)
      paced.push_back(subject.paced(times * fastest));
    for (double gamma = 1e3; gamma < 1e8; gamma *= std::sqrt(10))
      dmda.push_back(subject.dmda(gamma));
    std::printf("%s, batch %lld: %.4g s, %.4g J as fast as it goes; dmda %.4g s, %.4g J\n",
                model.c_str(), static_cast<long long>(batch), fastest, paced.front().energy_j,
                dmda.front().step_s, dmda.front().energy_j);
    std::fflush(stdout);
    for (const double slack : {1.05, 1.1, 1.25, 1.5, 2.0}) {
      const double ours = least_within(paced, slack * fastest);
      const double theirs = least_within(dmda, slack * fastest);
      std::printf("  steps of up to %.2f times: %.4g J by a pace, %.4g J by dmda\n", slack, ours,
                  theirs);
      std::fflush(stdout);  // the simulator forks
      EXPECT_LE(ours, 1.05 * theirs) << model << " " << slack;
      leaner += ours < theirs ? 1 : 0;
      EXPECT_LE(ours, paced.front().energy_j * (1 + 1e-9));
    }
  }
  EXPECT_GE(leaner, 7) << "of ten";
}

}  // namespace
}  // namespace regatta::app
