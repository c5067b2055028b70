#include "sim/fleet_run.h"

#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "sim/aside.h"
#include "sim/exchanger.h"

namespace regatta::sim {
namespace {

constexpr double half_interval = 1.96;  // deviations of a normal that a 95% interval spans

class FleetRun {
 public:
  FleetRun(const Fleet& fleet, const FleetMap& map, const SimulationOptions& options)
      : fleet_(fleet), map_(map), options_(options) {
    World::Shape shape;
    shape.hosts = map.hosts();
    for (const Wire& wire : map.wiring().wires()) shape.links.push_back(wire.bandwidth);
    for (const Rank& rank : fleet.ranks)
      rank_hosts_.push_back(map.hosts_of_rank(rank, shape.routes));
    if (map.several()) {
      const bool each = static_cast<int>(fleet.ranks.size()) <= options.message_ranks;
      const auto routes = [&](NodeUpdate how) {
        return ExchangeRoutes(make_exchange(how, map.endpoints(), map.wiring()), map.wiring(), each,
                              shape.routes);
      };
      gradient_routes_ = routes(fleet.update);
      // A few kilobytes: what counts is the number of messages that wait for each other.
      if (map.works().front().meetings() > 0) meeting_routes_ = routes(NodeUpdate::tree);
    }
    world_.emplace(shape);
    wires_of_route_ = std::move(shape.routes);
    for (const auto& routes : {&gradient_routes_, &meeting_routes_})
      if (*routes)
        for (const ExchangeRoutes::Alike& each : (*routes)->alike())
          wires_of_route_[static_cast<std::size_t>(each.route)].push_back(each.wire);
  }

  ReplicaOutcome run(int replica) {
    ReplicaOutcome outcome;
    begin_ = world_->now();
    engines_.clear();
    joules_at_begin_ = joules();
    exchanges_.clear();
    held_.clear();
    times_.clear();
    bytes_ = 0;
    ranks_left_.assign(static_cast<std::size_t>(options_.steps), fleet_.ranks.size());
    outcome_ = &outcome;
    for (std::size_t r = 0; r < fleet_.ranks.size(); ++r) add_engine(r, replica);
    for (const auto& engine : engines_) engine->begin();
    world_->run();
    if (outcome.step_ends.size() != static_cast<std::size_t>(options_.steps))
      throw Error("internal: the simulation stands still at step " +
                  std::to_string(outcome.step_ends.size() + 1));
    // What a pipeline sends is its tasks' data.
    for (std::size_t r = 0; r < engines_.size(); ++r)
      if (!fleet_.ranks[r].nodes.empty()) bytes_ += engines_[r]->bytes_fetched();
    outcome.bytes = {bytes_};
    const std::vector<World::Traffic> traffic = world_->take_traffic();
    if (replica > 0) return outcome;
    outcome.exchanges = exchange_times();
    outcome.traffic = use_of_wires(traffic, wires_of_route_);
    for (WireUse& each : outcome.traffic)
      for (double* time : {&each.start, &each.end}) *time -= begin_;
    for (const auto& engine : engines_)
      for (TaskEvents each : engine->events()) {
        for (double* time : {&each.submit, &each.ready, &each.start, &each.end, &each.fetched})
          *time -= begin_;
        outcome.events.push_back(each);
      }
    return outcome;
  }

 private:
  void add_engine(std::size_t r, int replica) {
    const Rank& rank = fleet_.ranks[r];
    NodeEngine::Options engine{options_.steps, options_.crowded, {}, chance_of(r, replica)};
    if (replica > 0) engine.shifts = draw(replica, rank.kind);
    const auto number = static_cast<int>(r);
    engines_.push_back(std::make_unique<NodeEngine>(
        *world_, map_.work(rank), rank_hosts_[r], std::move(engine),
        NodeEngine::Callbacks{[this, number](std::int64_t step, ExchangeId id) {
                                note(step, id, number);
                                exchange(step, id).ready(number);
                              },
                              [this](std::int64_t step) { step_done(step); }}));
  }

  // Called twice for each rank of an exchange: when it has its own part, and when it has all it
  // needs.
  void note(std::int64_t step, ExchangeId id, int rank) {
    if (!options_.record_exchanges) return;
    const double now = world_->now() - begin_;
    times_.try_emplace({step, id, rank}, now, now).first->second.second = now;
  }
  std::vector<ExchangeTimes> exchange_times() const {
    std::vector<ExchangeTimes> all;
    for (const auto& [key, times] : times_) {
      const auto& [step, id, rank] = key;
      all.push_back({step, static_cast<std::uint32_t>(rank), id, times.first, times.second});
    }
    return all;
  }

  std::uint64_t chance_of(std::size_t rank, int replica) const {
    return random_mix(random_mix(options_.seed + static_cast<std::uint64_t>(replica)) ^ rank);
  }

  // How wrong a task's cost turns out to be, in half-intervals: the same for all ranks of a kind
  // and all steps of a replica, because it is the profile that is wrong.
  std::vector<double> draw(int replica, int kind) const {
    const NodeWork& work = map_.works()[static_cast<std::size_t>(kind)];
    std::vector<double> shifts;
    const std::uint64_t stream =
        random_mix(stream_of("simulated costs") ^ static_cast<std::uint64_t>(replica)) +
        static_cast<std::uint64_t>(kind);
    for (std::size_t t = 0; t < work.tasks(); ++t)
      shifts.push_back(double{random_normal(options_.seed, stream, t)} / half_interval);
    return shifts;
  }

  BucketExchange& exchange(std::int64_t step, ExchangeId id) {
    std::unique_ptr<BucketExchange>& found = exchanges_[{step, id}];
    if (!found) {
      const NodeWork& work = map_.works().front();
      const ExchangeRoutes& routes = work.of_bucket(id) ? *gradient_routes_ : *meeting_routes_;
      const double bytes = work.exchange_bytes(id);
      bytes_ += bytes * routes.total_share();
      found = std::make_unique<BucketExchange>(
          *world_, routes, static_cast<int>(fleet_.ranks.size()), bytes,
          [this, step, id](int rank) {
            note(step, id, rank);
            engines_[static_cast<std::size_t>(rank)]->exchanged(step, id);
          });
      if (work.of_bucket(id) && serves() && fleet_.server_sends_last)
        found->hold([this, step] { world_->later(0, [this, step] { one_held(step); }); });
    }
    return *found;
  }

  bool serves() const {
    return fleet_.update == NodeUpdate::server_cpu || fleet_.update == NodeUpdate::server_gpu;
  }

  void one_held(std::int64_t step) {
    const std::size_t buckets = map_.works().front().blueprint().buckets.size();
    if (++held_[step] < buckets) return;
    for (std::uint32_t b = 0; b < buckets; ++b) exchange(step, ExchangeId{b}).release();
  }

  void step_done(std::int64_t step) {
    if (--ranks_left_[static_cast<std::size_t>(step)] > 0) return;
    outcome_->step_ends.push_back(world_->now() - begin_);
    const std::vector<double> now = joules();
    for (std::size_t h = 0; h < now.size(); ++h)
      outcome_->joules.push_back(now[h] - joules_at_begin_[h]);
  }

  std::vector<double> joules() const {
    std::vector<double> values;
    for (std::size_t h = 0; h < map_.hosts().size(); ++h)
      values.push_back(world_->joules(static_cast<int>(h)));
    // Joules beyond idle of workers with their own powers, which the host does not know.
    for (std::size_t r = 0; r < engines_.size(); ++r)
      for (std::size_t p = 0; p < fleet_.ranks[r].devices.size(); ++p)
        values[static_cast<std::size_t>(rank_hosts_[r].hosts[p])] += engines_[r]->joules(p);
    return values;
  }

  const Fleet& fleet_;
  const FleetMap& map_;
  const SimulationOptions& options_;
  std::vector<RankHosts> rank_hosts_;
  std::optional<ExchangeRoutes> gradient_routes_, meeting_routes_;
  std::optional<World> world_;
  std::vector<std::vector<int>> wires_of_route_;
  std::vector<std::unique_ptr<NodeEngine>> engines_;
  std::map<std::pair<std::int64_t, ExchangeId>, std::unique_ptr<BucketExchange>> exchanges_;
  std::map<std::int64_t, std::size_t> held_;  // by step: buckets that a server has
  // Begin and end of each rank's part, in seconds since the replica began; by step, exchange, rank.
  std::map<std::tuple<std::int64_t, ExchangeId, int>, std::pair<double, double>> times_;
  std::vector<std::size_t> ranks_left_;
  std::vector<double> joules_at_begin_;
  double begin_ = 0, bytes_ = 0;
  ReplicaOutcome* outcome_ = nullptr;
};

}  // namespace

std::string run_fleet(const Fleet& fleet, const FleetMap& map, const SimulationOptions& options) {
  // SimGrid's engine is not to be torn down: the process ends soon.
  auto* run = new FleetRun(fleet, map, options);  // NOLINT(cppcoreguidelines-owning-memory)
  ByteWriter writer;
  for (int replica = 0; replica < options.replicas; ++replica) {
    const ReplicaOutcome outcome = run->run(replica);
    writer.put(outcome.step_ends);
    writer.put(outcome.joules);
    writer.put(outcome.events);
    writer.put(outcome.bytes);
    writer.put(outcome.traffic);
    writer.put(outcome.exchanges);
  }
  return writer.take();
}

std::vector<ReplicaOutcome> replicas_of(const std::string& bytes, int replicas) {
  ByteReader reader(bytes);
  std::vector<ReplicaOutcome> outcomes;
  for (int replica = 0; replica < replicas; ++replica) {
    ReplicaOutcome outcome;
    outcome.step_ends = reader.get<double>();
    outcome.joules = reader.get<double>();
    outcome.events = reader.get<TaskEvents>();
    outcome.bytes = reader.get<double>();
    outcome.traffic = reader.get<WireUse>();
    outcome.exchanges = reader.get<ExchangeTimes>();
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace regatta::sim
