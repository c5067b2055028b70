#include "optimize/generated_problems.h"

#include <algorithm>

namespace regatta::optimize {
namespace {

// std's distributions may differ between libraries; these do not.
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

// What samples need at least, if costs may be `lower` times what they are said to be.
LeastCosts least_of(const DeviceState& state, double lower) {
  LeastCosts least;
  for (const CostLine& line : state.seconds) {
    least.seconds.push_back({line.fixed * lower, line.per_sample * lower});
    least.joules.push_back(
        {line.fixed * lower * state.busy_watts, line.per_sample * lower * state.busy_watts});
  }
  return least;
}

DeviceState drawn_state(Draw& draw, std::size_t segments) {
  DeviceState state;
  const double fixed = draw.whole(0, 2) == 0 ? draw.real(0, 2) : 0;
  const double speed = draw.real(0.2, 4);
  state.idle_watts = draw.real(1, 50);
  state.busy_watts = draw.real(5, 300);
  const double lower = draw.whole(0, 1) == 0 ? 1 : draw.real(0.6, 1);
  for (std::size_t g = 0; g < segments; ++g)
    state.seconds.push_back({fixed / static_cast<double>(segments),
                             draw.real(0.5, 1.5) / speed / static_cast<double>(segments)});
  state.least = least_of(state, lower);
  state.certain = least_of(state, 1);
  return state;
}

DeviceState slower(const DeviceState& full, double speed, double draws) {
  DeviceState state = full;
  state.name = "eco";
  state.idle_watts *= draws;
  state.busy_watts *= draws;
  const auto scale = [](std::vector<CostLine>& lines, double factor) {
    for (CostLine& line : lines) line = {line.fixed * factor, line.per_sample * factor};
  };
  scale(state.seconds, 1 / speed);
  for (LeastCosts* costs : {&state.least, &state.certain}) {
    scale(costs->seconds, 1 / speed);
    scale(costs->joules, draws / speed);
  }
  return state;
}

void draw_network(Draw& draw, Problem& problem) {
  double ready = 1;
  for (SegmentTraffic& segment : problem.segments) {
    segment.gradient_bytes = draw.whole(0, 3) == 0 ? 0 : draw.real(1e5, 1e8);
    segment.border_bytes = draw.real(1e4, 1e7);
    segment.ready = ready;
    ready -= draw.real(0, 0.5) * ready;
  }
  if (draw.whole(0, 2) > 0) return;
  problem.domains.push_back({"far", 0, draw.real(1e6, 1e9)});
  for (NodeKind& node : problem.nodes) node.domain = draw.whole(0, 1);
}

// Every way to deal out `left` samples to the devices from `next` on.
class Trial {
 public:
  Trial(const Problem& problem, Objective objective, const Limits& limits)
      : problem_(problem), objective_(objective), limits_(limits) {
    for (std::size_t k = 0; k < problem.nodes.size(); ++k)
      for (std::int64_t i = 0; i < problem.nodes[k].count; ++i)
        nodes_.push_back(static_cast<int>(k));
  }

  std::optional<Outcome> run() {
    choose_node(0);
    return best_;
  }

 private:
  void choose_node(std::size_t n) {
    if (n == nodes_.size()) {
      if (!uses_.empty()) deal(0, 0, problem_.batch);
      return;
    }
    choose_node(n + 1);
    const NodeKind& node = problem_.nodes[static_cast<std::size_t>(nodes_[n])];
    uses_.push_back({nodes_[n], 1, {}});
    choose_device(n, 0, node);
    uses_.pop_back();
  }

  void choose_device(std::size_t n, std::size_t d, const NodeKind& node) {
    if (d == node.devices.size()) {
      if (std::ranges::any_of(uses_.back().parts, [](const auto& part) { return part.units > 0; }))
        choose_node(n + 1);
      return;
    }
    const Device& device = node.devices[d];
    for (int units = 0; units <= (device.offered ? device.units : 0); ++units)
      for (int state = 0; state < (units ? static_cast<int>(device.states.size()) : 1); ++state) {
        uses_.back().parts.push_back({units, state});
        choose_device(n, d + 1, node);
        uses_.back().parts.pop_back();
      }
  }

  // The model knows devices of a node and state by their samples together, spread evenly.
  void deal(std::size_t u, std::size_t d, std::int64_t left) {
    if (portions_.size() <= u && u < uses_.size()) portions_.emplace_back(uses_[u].parts.size());
    if (u == uses_.size()) {
      if (left == 0) evaluate();
      return;
    }
    if (d == uses_[u].parts.size()) {
      deal(u + 1, 0, left);
      portions_.resize(u + 1);
      return;
    }
    const int units = uses_[u].parts[d].units;
    if (units == 0) return deal(u, d + 1, left);
    const Device& device = problem_.nodes[static_cast<std::size_t>(uses_[u].kind)].devices[d];
    for (std::int64_t samples = units; samples <= left; ++samples) {
      const Portion portion{units, samples / units, samples % units};
      if (portion.most() > device.most_samples) break;
      portions_[u][d] = portion;
      deal(u, d + 1, left - samples);
    }
    portions_[u][d] = {};
  }

  void evaluate() {
    for (const NodeUpdate update : all_updates()) {
      const Outcome outcome = outcome_of(problem_, uses_, portions_, update);
      if (excess(problem_, outcome, limits_) > 0) continue;
      if (!best_ || value_of(outcome, objective_) < value_of(*best_, objective_)) best_ = outcome;
    }
  }

  const Problem& problem_;
  const Objective objective_;
  const Limits& limits_;
  std::vector<int> nodes_;  // kinds
  std::vector<NodeUse> uses_;
  std::vector<std::vector<Portion>> portions_;
  std::optional<Outcome> best_;
};

}  // namespace

void name_updates(Problem& problem) {
  for (NodeKind& node : problem.nodes)
    for (Device& device : node.devices)
      for (DeviceState& state : device.states)
        for (std::size_t g = 0; g < state.least.seconds.size(); ++g) {
          double &seconds = state.least.seconds[g].fixed, &joules = state.least.joules[g].fixed;
          state.least.update_s.push_back(seconds /= 2);
          state.least.update_j.push_back(joules /= 2);
        }
}

Problem generated(std::uint32_t number, const Size& size) {
  Draw draw(number);
  Problem problem;
  problem.batch = draw.whole(1, static_cast<int>(size.batch));
  problem.images = problem.batch * draw.whole(1, 100);
  problem.money_per_joule = draw.whole(0, 1) == 0 ? 0 : draw.real(0, 1e-6);
  problem.segments.resize(static_cast<std::size_t>(draw.whole(1, size.segments)));
  int left = draw.whole(1, size.devices);
  while (left > 0) {
    NodeKind node;
    node.name = std::string(1, static_cast<char>('a' + problem.nodes.size()));
    node.link_bandwidth = draw.whole(0, 3) == 0 ? 1e12 : draw.real(1e6, 1e9);
    Device device;
    device.states.push_back(drawn_state(draw, problem.segments.size()));
    if (draw.whole(0, 2) == 0)
      device.states.push_back(
          slower(device.states.front(), draw.real(0.4, 0.9), draw.real(0.2, 1)));
    if (draw.whole(0, 4) == 0) device.most_samples = draw.whole(1, 8);
    if (left >= 2 && draw.whole(0, 2) == 0) node.count = 2;
    device.units = left >= 2 * node.count && draw.whole(0, 3) == 0 ? 2 : 1;
    left -= static_cast<int>(node.count) * device.units;
    node.devices.push_back(std::move(device));
    node.idle_watts = draw.real(0, 60);
    for (const Device& each : node.devices)
      node.idle_watts += each.units * each.states.front().idle_watts;
    node.unused_watts =
        draw.whole(0, 1) == 0 ? node.idle_watts : draw.real(0, 0.2) * node.idle_watts;
    node.money_per_s = draw.whole(0, 1) == 0 ? 0 : draw.real(0, 1e-3);
    node.pays_energy = draw.whole(0, 1) == 0;
    problem.nodes.push_back(std::move(node));
  }
  draw_network(draw, problem);
  return problem;
}

std::optional<Outcome> best_by_trying_all(const Problem& problem, Objective objective,
                                          const Limits& limits) {
  return Trial(problem, objective, limits).run();
}

}  // namespace regatta::optimize
