#include "optimize/pipeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace regatta::optimize {
namespace {

// More chunks than stages keep all of them busy; with four for each, a quarter is lost at most.
constexpr std::int64_t chunks_of_a_stage = 4;
// Orders of devices that are tried at most: with more kinds, pipelines get shorter.
constexpr double most_orders = 2000;

double number(std::int64_t value) { return static_cast<double>(value); }

const DeviceState& state_of(const Problem& problem, const StageUse& stage) {
  return problem.nodes[static_cast<std::size_t>(stage.kind)]
      .devices[static_cast<std::size_t>(stage.device)]
      .states[static_cast<std::size_t>(stage.state)];
}

double stage_seconds(const Problem& problem, const StageUse& stage, double samples) {
  double seconds = 0;
  for (std::size_t g = stage.first; g <= stage.last; ++g)
    seconds += state_of(problem, stage).seconds[g].at(samples);
  return seconds;
}

// The narrowest link between two nodes.
double bandwidth_between(const Problem& problem, int kind, int other) {
  const NodeKind& from = problem.nodes[static_cast<std::size_t>(kind)];
  const NodeKind& to = problem.nodes[static_cast<std::size_t>(other)];
  double narrowest = std::min(from.link_bandwidth, to.link_bandwidth);
  std::vector<int> above;  // domains above `from`
  for (int d = from.domain; d >= 0; d = problem.domains[static_cast<std::size_t>(d)].parent)
    above.push_back(d);
  int meet = to.domain;
  for (; meet >= 0 && std::ranges::find(above, meet) == above.end();
       meet = problem.domains[static_cast<std::size_t>(meet)].parent)
    narrowest =
        std::min(narrowest, problem.domains[static_cast<std::size_t>(meet)].uplink_bandwidth);
  for (const int d : above) {
    if (d == meet) break;
    narrowest = std::min(narrowest, problem.domains[static_cast<std::size_t>(d)].uplink_bandwidth);
  }
  return narrowest;
}

// Values go forward and their gradients back, so a chunk crosses twice.
double border_seconds(const Problem& problem, const StageUse& before, const StageUse& after,
                      double samples) {
  return 2 * problem.segments[before.last].border_bytes * samples /
         bandwidth_between(problem, before.kind, after.kind);
}

// Devices by what a search distinguishes: kind of node, device and state.
struct Owner {
  int kind = 0, device = 0, state = 0;
};

class PipelineSearch {
 public:
  PipelineSearch(const Problem& problem, Objective objective, const Limits& limits,
                 std::size_t keep)
      : problem_(problem), objective_(objective), limits_(limits), keep_(keep) {
    for (std::size_t k = 0; k < problem.nodes.size(); ++k)
      for (std::size_t d = 0; d < problem.nodes[k].devices.size(); ++d) {
        const Device& device = problem.nodes[k].devices[d];
        if (!device.offered) continue;
        for (std::size_t s = 0; s < device.states.size(); ++s)
          owners_.push_back({static_cast<int>(k), static_cast<int>(d), static_cast<int>(s)});
      }
  }

  std::vector<Pipeline> run(std::size_t most_stages) {
    most_stages = std::min(most_stages, problem_.segments.size());
    while (most_stages > 2 &&
           std::pow(number(std::ssize(owners_)), number(static_cast<std::int64_t>(most_stages))) >
               most_orders)
      --most_stages;
    for (std::size_t stages = 2; stages <= most_stages; ++stages) {
      chunks_ = chunks_for(problem_.batch, stages);
      samples_ = number(problem_.batch) / number(chunks_);
      stages_ = stages;
      std::vector<Labels> begin(problem_.segments.size() + 1);
      begin[0].push_back({});
      order_.clear();
      extend(begin);
    }
    std::vector<Pipeline> best;
    for (auto& [rank, pipeline] : best_) best.push_back(std::move(pipeline));
    return best;
  }

 private:
  // A partial pipeline up to some segment.
  struct Label {
    double sum = 0, slowest = 0, joules = 0;
    std::vector<std::size_t> lasts;  // of its stages
  };
  using Labels = std::vector<Label>;

  static bool covers(const Label& one, const Label& other) {
    return one.sum <= other.sum && one.slowest <= other.slowest && one.joules <= other.joules;
  }
  static void add(Labels& labels, Label label) {
    for (const Label& each : labels)
      if (covers(each, label)) return;
    std::erase_if(labels, [&](const Label& each) { return covers(label, each); });
    labels.push_back(std::move(label));
  }

  bool free(const Owner& owner) const {
    const NodeKind& node = problem_.nodes[static_cast<std::size_t>(owner.kind)];
    std::int64_t taken = 0;
    for (const Owner& each : order_)
      taken += each.kind == owner.kind && each.device == owner.device ? 1 : 0;
    return taken < node.count * node.devices[static_cast<std::size_t>(owner.device)].units;
  }

  void extend(const std::vector<Labels>& so_far) {
    if (order_.size() == stages_) {
      for (const Label& label : so_far.back()) take(label);
      return;
    }
    const std::size_t left = stages_ - order_.size() - 1;  // stages after this one
    for (const Owner& owner : owners_) {
      if (!free(owner)) continue;
      order_.push_back(owner);
      std::vector<Labels> longer(so_far.size());
      for (std::size_t first = 0; first + 1 < so_far.size(); ++first)
        for (const Label& label : so_far[first])
          for (std::size_t last = first; last + left < problem_.segments.size(); ++last) {
            if (left == 0 && last + 1 < problem_.segments.size()) continue;
            add(longer[last + 1], with_stage(label, owner, first, last));
          }
      extend(longer);
      order_.pop_back();
    }
  }

  Label with_stage(const Label& label, const Owner& owner, std::size_t first,
                   std::size_t last) const {
    const StageUse stage{owner.kind, owner.device, owner.state, first, last};
    const double seconds = stage_seconds(problem_, stage, samples_);
    Label longer = label;
    longer.sum += seconds;
    longer.slowest = std::max(longer.slowest, seconds);
    longer.joules += state_of(problem_, stage).busy_watts * seconds * number(chunks_);
    if (!label.lasts.empty()) {
      const Owner& earlier = order_[order_.size() - 2];
      const StageUse before{earlier.kind, earlier.device, earlier.state, 0, label.lasts.back()};
      const double border = border_seconds(problem_, before, stage, samples_);
      longer.sum += border;
      longer.slowest = std::max(longer.slowest, border);
    }
    longer.lasts.push_back(last);
    return longer;
  }

  void take(const Label& label) {
    Pipeline pipeline;
    pipeline.chunks = chunks_;
    std::size_t first = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      pipeline.stages.push_back(
          {order_[i].kind, order_[i].device, order_[i].state, first, label.lasts[i]});
      first = label.lasts[i] + 1;
    }
    pipeline.outcome = outcome_of(problem_, pipeline.stages, chunks_);
    const auto rank = std::tuple(excess(problem_, pipeline.outcome, limits_),
                                 value_of(pipeline.outcome, objective_), pipeline.outcome.step_s,
                                 pipeline.outcome.energy_j, pipeline.stages);
    best_.emplace(rank, std::move(pipeline));
    if (best_.size() > keep_) best_.erase(std::prev(best_.end()));
  }

  const Problem& problem_;
  const Objective objective_;
  const Limits& limits_;
  const std::size_t keep_;
  std::vector<Owner> owners_, order_;
  std::size_t stages_ = 0;
  std::int64_t chunks_ = 1;
  double samples_ = 1;  // of a chunk
  std::map<std::tuple<double, double, double, double, std::vector<StageUse>>, Pipeline> best_;
};

}  // namespace

std::int64_t chunks_for(std::int64_t batch, std::size_t stages) {
  return std::min(batch, chunks_of_a_stage * static_cast<std::int64_t>(stages));
}

Outcome outcome_of(const Problem& problem, const std::vector<StageUse>& stages,
                   std::int64_t chunks) {
  const double samples = number(problem.batch) / number(chunks);
  Outcome outcome;
  double slowest = 0, beyond = 0, paid_beyond = 0, busy = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double seconds = stage_seconds(problem, stages[i], samples);
    const double joules = state_of(problem, stages[i]).busy_watts * seconds * number(chunks);
    outcome.step_s += seconds;
    slowest = std::max(slowest, seconds);
    beyond += joules;
    busy += state_of(problem, stages[i]).busy_watts;
    if (problem.nodes[static_cast<std::size_t>(stages[i].kind)].pays_energy) paid_beyond += joules;
    if (i == 0) continue;
    const double border = border_seconds(problem, stages[i - 1], stages[i], samples);
    outcome.step_s += border;
    outcome.exchange_s += border * number(chunks);
    slowest = std::max(slowest, border);
  }
  outcome.step_s += slowest * number(chunks - 1);
  outcome.compute_s = outcome.step_s;

  // Stages of one kind take GPUs of one node before they take another node.
  double always = unused_watts(problem), paid_always = 0;
  for (const NodeKind& node : problem.nodes)
    if (node.pays_energy) paid_always += node.unused_watts * number(node.count);
  for (std::size_t k = 0; k < problem.nodes.size(); ++k) {
    const NodeKind& node = problem.nodes[k];
    std::int64_t nodes = 0;
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      std::int64_t used = 0;
      for (const StageUse& stage : stages)
        used += stage.kind == static_cast<int>(k) && stage.device == static_cast<int>(d) ? 1 : 0;
      const std::int64_t units = node.devices[d].units;
      nodes = std::max(nodes, (used + units - 1) / units);
    }
    double watts = number(nodes) * (node.idle_watts - node.unused_watts);
    for (const StageUse& stage : stages)
      if (stage.kind == static_cast<int>(k))
        watts += state_of(problem, stage).idle_watts -
                 node.devices[static_cast<std::size_t>(stage.device)].states.front().idle_watts;
    always += watts;
    if (node.pays_energy) paid_always += watts;
    outcome.cost += number(nodes) * node.money_per_s *
                    std::max(outcome.step_s, node.least_rent_s / number(problem.steps()));
  }
  outcome.energy_j = always * outcome.step_s + beyond;
  outcome.peak_watts = always + busy;
  outcome.cost += problem.money_per_joule * (paid_always * outcome.step_s + paid_beyond);
  return outcome;
}

std::vector<Pipeline> best_pipelines(const Problem& problem, Objective objective,
                                     const Limits& limits, std::size_t most_stages,
                                     std::size_t keep) {
  return PipelineSearch(problem, objective, limits, keep).run(most_stages);
}

}  // namespace regatta::optimize
