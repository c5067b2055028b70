#include "sim/world.h"

#include <simgrid/plugins/energy.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <utility>

namespace regatta::sim {
namespace {

namespace s4u = simgrid::s4u;

// SimGrid counts in FLOPs and bytes and calls what is left of them zero below 1e-9.
constexpr double flops_per_second = 1e9, shortest_work = 1 / flops_per_second;

}  // namespace

class World::Impl {
 public:
  explicit Impl(const Shape& shape) : engine_(&argument_count_, arguments_) {
    // Plain numbers that can be computed by hand: bandwidth and latency as given (the default model
    // takes 97% of the one and 13 times the other), no limit by TCP's window, and no share of a
    // link for acknowledgements.
    engine_.set_config("network/model:CM02");
    engine_.set_config("network/TCP-gamma:0");
    engine_.set_config("network/crosstraffic:0");
    configure("precision/timing", "surf/precision", "1e-9");
    configure("precision/work-amount", "maxmin/precision", "1e-9");
    sg_host_energy_plugin_init();  // after the engine, before the hosts

    s4u::NetZone* zone = s4u::create_star_zone("world");
    for (const Host& host : shape.hosts) hosts_.push_back(make_host(*zone, host));
    running_.resize(hosts_.size());
    progressed_.resize(hosts_.size(), 0);
    std::vector<const s4u::Link*> links;
    for (const double bandwidth : shape.links)
      links.push_back(
          zone->create_link("link" + std::to_string(links.size()), bandwidth)->set_latency(0));
    // A route is a host's way to itself, so there are as many as are used and not one for each
    // pair.
    for (const std::vector<int>& route : shape.routes) {
      s4u::Host* end = zone->create_host("route" + std::to_string(routes_.size()), 1.0);
      std::vector<s4u::LinkInRoute> way;
      for (const int link : route) way.emplace_back(links[static_cast<std::size_t>(link)]);
      zone->add_route(end->get_netpoint(), end->get_netpoint(), nullptr, nullptr, way, true);
      routes_.push_back(end);
    }
    messages_.assign(routes_.size(), 0);
    latest_.assign(routes_.size(), none);
    zone->seal();
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
      if (auto done = under_way_.extract(&activity)) done.mapped().then();
    });
  }

  WorkId work(int host, double seconds, Then then, int cores) {
    const s4u::ExecPtr exec = s4u::Exec::init();
    seconds = std::max(seconds, shortest_work);
    exec->set_flops_amount(seconds * flops_per_second);  // of each core
    s4u::Host* where = hosts_[static_cast<std::size_t>(host)];
    cores = std::min(cores, where->get_core_count());
    if (cores > 1) exec->set_thread_count(cores);
    exec->set_host(where);
    const WorkId id = next_work_++;
    progress(host);
    running_[static_cast<std::size_t>(host)].emplace(id, Running{exec, cores, seconds});
    host_of_[id] = host;
    start(exec, [this, id, then = std::move(then)] {
      forget(id);
      then();
    });
    return id;
  }

  double left(WorkId work) {
    const int host = host_of_.at(work);
    progress(host);
    return running_[static_cast<std::size_t>(host)].at(work).left;
  }

  void stop(WorkId work) {
    const s4u::ExecPtr exec = forget(work);
    under_way_.erase(exec.get());
    // SimGrid may still touch a cancelled activity until this instant is over.
    while (!stopped_.empty() && stopped_.front().first < now()) stopped_.pop_front();
    stopped_.emplace_back(now(), exec);
    exec->cancel();
  }

  void send(int route, double bytes, Then then, double latency) {
    begin_traffic(route, bytes);
    if (latency <= 0) return travel(route, bytes, std::move(then));
    later(latency, [this, route, bytes, then = std::move(then)] { travel(route, bytes, then); });
  }

  std::vector<Traffic> take_traffic() {
    latest_.assign(routes_.size(), none);
    return std::exchange(traffic_, {});
  }

  static void later(double seconds, Then then) {
    simgrid::kernel::timer::Timer::set(now() + seconds, std::move(then));
  }

  void run() { engine_.run(); }
  static double now() { return s4u::Engine::get_clock(); }
  double joules(int host) const {
    return sg_host_get_consumed_energy(hosts_[static_cast<std::size_t>(host)]);
  }

 private:
  struct UnderWay {
    s4u::ActivityPtr activity;  // SimGrid lets go of what nobody holds
    Then then;
  };

  struct Running {
    s4u::ExecPtr exec;
    int cores = 1;
    double left = 0;  // seconds with a core for each thread
  };

  // SimGrid cannot be asked what is left of work that has ended and whose end it has not told yet,
  // so the works of a host are followed here: they share its cores evenly.
  void progress(int host) {
    const auto h = static_cast<std::size_t>(host);
    const double elapsed = now() - std::exchange(progressed_[h], now());
    if (elapsed <= 0) return;
    int wanted = 0;
    for (const auto& [id, running] : running_[h]) wanted += running.cores;
    const double speed = std::min(1.0, hosts_[h]->get_core_count() / std::max(1.0, 1.0 * wanted));
    for (auto& [id, running] : running_[h])
      running.left = std::max(0.0, running.left - speed * elapsed);
  }

  s4u::ExecPtr forget(WorkId work) {
    const int host = host_of_.extract(work).mapped();
    progress(host);
    return std::move(running_[static_cast<std::size_t>(host)].extract(work).mapped().exec);
  }

  void travel(int route, double bytes, Then then) {
    s4u::Host* end = routes_[static_cast<std::size_t>(route)];
    const s4u::CommPtr comm = s4u::Comm::sendto_init(end, end);
    comm->set_payload_size(static_cast<std::uint64_t>(bytes));
    start(comm, [this, route, then = std::move(then)] {
      end_traffic(route);
      then();
    });
  }

  void begin_traffic(int route, double bytes) {
    const auto r = static_cast<std::size_t>(route);
    // A message that starts when the previous one arrives extends that one's interval.
    if (messages_[r]++ == 0 && (latest_[r] == none || traffic_[latest_[r]].end < now())) {
      latest_[r] = traffic_.size();
      traffic_.push_back({route, now(), now(), 0, 0});
    }
    traffic_[latest_[r]].bytes += bytes;
    ++traffic_[latest_[r]].messages;
  }
  void end_traffic(int route) {
    const auto r = static_cast<std::size_t>(route);
    if (--messages_[r] == 0) traffic_[latest_[r]].end = now();
  }

  void start(const s4u::ActivityPtr& activity, Then then) {
    under_way_[activity.get()] = {activity, std::move(then)};
    activity->start();
  }

  // Later versions have other names for it.
  void configure(const char* name, const char* old_name, const char* value) {
    try {
      engine_.set_config(std::string(name) + ":" + value);
    } catch (const std::exception&) {
      engine_.set_config(std::string(old_name) + ":" + value);
    }
  }

  s4u::Host* make_host(s4u::NetZone& zone, const Host& host) {
    s4u::Host* made = zone.create_host("host" + std::to_string(hosts_.size()), flops_per_second);
    made->set_core_count(host.cores);
    // Idle, about to work, all cores at work.
    char watts[120];
    std::snprintf(watts, sizeof watts, "%.17g:%.17g:%.17g", host.idle_watts * host.cores,
                  host.idle_watts * host.cores, host.active_watts * host.cores);
    made->set_property("wattage_per_state", watts);
    made->seal();
    return made;
  }

  char name_[4] = "sim", quiet_[32] = "--log=root.thres:critical";
  char* arguments_[3] = {name_, quiet_, nullptr};
  int argument_count_ = 2;
  s4u::Engine engine_;
  std::vector<s4u::Host*> hosts_, routes_;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<int> messages_;        // by route: on their way
  std::vector<std::size_t> latest_;  // by route: its latest traffic, or none
  std::vector<Traffic> traffic_;
  std::unordered_map<const s4u::Activity*, UnderWay> under_way_;
  std::vector<std::unordered_map<WorkId, Running>> running_;  // by host
  std::vector<double> progressed_;                            // by host: until when
  std::unordered_map<WorkId, int> host_of_;
  std::deque<std::pair<double, s4u::ExecPtr>> stopped_;  // with the time it was stopped at
  WorkId next_work_ = 0;
};

World::World(const Shape& shape) : impl_(std::make_unique<Impl>(shape)) {}
World::~World() = default;
Clock::WorkId World::work(int host, double seconds, Then then, int cores) {
  return impl_->work(host, seconds, std::move(then), cores);
}
double World::left(WorkId work) { return impl_->left(work); }
void World::stop(WorkId work) { impl_->stop(work); }
void World::send(int route, double bytes, Then then) {
  impl_->send(route, bytes, std::move(then), 0);
}
void World::send(int route, double bytes, Then then, double latency) {
  impl_->send(route, bytes, std::move(then), latency);
}
std::vector<World::Traffic> World::take_traffic() { return impl_->take_traffic(); }
void World::later(double seconds, Then then) { Impl::later(seconds, std::move(then)); }
void World::run() { impl_->run(); }
double World::now() const { return Impl::now(); }
double World::joules(int host) const { return impl_->joules(host); }

}  // namespace regatta::sim
