#include "app/rank_platform.h"

#include <algorithm>
#include <limits>
#include <set>

#include "app/profiles.h"
#include "app/rank_run.h"
#include "base/error.h"
#include "base/files.h"
#include "platform/energy.h"
#include "platform/machine.h"
#include "profile/store.h"
#include "transport/collectives.h"
#include "transport/links.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* top_name = "top";

std::string switch_name(int site) { return "site-" + std::to_string(site); }

// The bandwidth of a rank's own link in bytes a second: the highest measured to any of `others`.
double fastest(const RankLinks& links, std::size_t rank, const std::vector<std::size_t>& others) {
  double most = 0;
  for (const std::size_t other : others) most = std::max(most, links[rank][other].bandwidth);
  return most;
}

// The latency of a rank's own link in seconds. A measured latency is the sum of those of two
// links, so any two of `others` tell the rank's own: the least is taken. With one other: half.
double own_latency(const RankLinks& links, std::size_t rank,
                   const std::vector<std::size_t>& others) {
  std::vector<double> found;
  for (const std::size_t a : others)
    for (const std::size_t b : others)
      if (a < b)
        found.push_back((links[rank][a].latency + links[rank][b].latency - links[a][b].latency) /
                        2);
  if (found.empty()) return links[rank][others.front()].latency / 2;
  return std::max(0.0, std::ranges::min(found));
}

// What each rank's machine has measured with so many CPUs goes to the first rank, which writes it
// to the run folder. Returns the files by rank, on the first rank.
std::vector<std::string> write_profiles(Ranks& ranks, const fs::path& run) {
  const auto profile = own_profile();
  const std::vector<std::string> all = texts_on_first(
      *ranks.transport(), profile ? to_json(*profile, profile_store().mark()).dump() : "");
  std::vector<std::string> files;
  on_all_ranks(&ranks, [&] {
    for (const std::string& text : all) {
      const std::string name = "profiles/rank-" + std::to_string(files.size()) + ".json";
      files.push_back(text.empty() ? "" : name);
      if (text.empty()) continue;
      fs::create_directory(run / "profiles");
      write_file(run / name, text + "\n");
    }
  });
  return files;
}

}  // namespace

bool RankNetwork::all_have_profiles() const {
  return profiles.size() == links.size() &&
         std::ranges::none_of(profiles, [](const std::string& name) { return name.empty(); });
}

sim::Profiles RankNetwork::profiles_in(const fs::path& run,
                                       std::shared_ptr<const Profile> other) const {
  sim::Profiles found{{here, std::move(other)}};
  for (const std::string& name : profiles)
    if (!name.empty() && !found.contains(name))
      found[name] =
          std::make_shared<const Profile>(profile_from_json(read_json(run / name)).profile);
  return found;
}

std::string measure_network(Ranks& ranks, const fs::path& run) {
  Json bandwidth = Json::array(), latency = Json::array(), cpus = Json::array();
  for (const std::vector<MeasuredLink>& row : measure_links(*ranks.transport())) {
    bandwidth.push_back(Json::array());
    latency.push_back(Json::array());
    for (const MeasuredLink& each : row) {
      bandwidth.back().push_back(each.bandwidth);
      latency.back().push_back(each.latency);
    }
  }
  for (const std::string& each : ranks.gather(std::to_string(available_cpus())))
    cpus.push_back(std::stoi(each));
  return Json{{"bandwidth", bandwidth},
              {"latency", latency},
              {"machines", ranks.machines()},
              {"cpus", cpus},
              {"profiles", write_profiles(ranks, run)}}
      .dump();
}

RankNetwork network_in(const trace::Record& record) {
  const auto found = record.metadata.find(network_key);
  if (found == record.metadata.end())
    throw InputError(
        "this record of several ranks does not tell their links: train once more with --trace");
  const Json json = Json::parse(found->second);
  const Json &bandwidth = json.at("bandwidth"), &latency = json.at("latency");
  RankNetwork network{{}, json.at("machines"), json.at("cpus"), {}};
  if (const auto profiles = json.find("profiles"); profiles != json.end())
    network.profiles = profiles->get<std::vector<std::string>>();
  for (std::size_t r = 0; r < bandwidth.size(); ++r) {
    network.links.emplace_back();
    for (std::size_t other = 0; other < bandwidth[r].size(); ++other)
      network.links.back().push_back({bandwidth[r][other], latency[r][other]});
  }
  return network;
}

Platform platform_of_ranks(const Plan& plan, const RankNetwork& network) {
  const RankLinks& links = network.links;
  const std::size_t ranks = plan.nodes.size();
  if (links.size() != ranks)
    throw InputError("the record tells the links of " + std::to_string(links.size()) +
                     " ranks, its plan is for " + std::to_string(ranks));
  const std::vector<int> sites = sites_of(network.machines, links);
  // By rank: the other ranks of its site, or all other ranks if it is alone there.
  std::vector<std::vector<std::size_t>> near(ranks);
  std::vector<double> latency(ranks, 0);  // of a rank's own link
  for (std::size_t r = 0; r < ranks; ++r) {
    const bool alone = std::ranges::count(sites, sites[r]) == 1;
    for (std::size_t other = 0; other < ranks; ++other)
      if (other != r && (alone || sites[other] == sites[r])) near[r].push_back(other);
    if (!alone) latency[r] = own_latency(links, r, near[r]);
  }
  const std::set<int> different(sites.begin(), sites.end());
  Platform platform;
  platform.name = "the ranks of a run";
  platform.remark = "links and costs as measured when the run began";
  platform.network.topology = Topology::tree;
  platform.network.switches.push_back({top_name});
  for (const int site : different) {
    if (different.size() == 1) break;
    LinkSpeed uplink{0, std::numeric_limits<double>::infinity()};
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t other = 0; other < ranks; ++other) {
        if (sites[r] != site || sites[other] == site) continue;
        const double rest = links[r][other].latency - latency[r] - latency[other];
        uplink.bandwidth = std::max(uplink.bandwidth, links[r][other].bandwidth);
        uplink.latency = std::min(uplink.latency, std::max(0.0, rest) / 2);
      }
    platform.network.switches.push_back({switch_name(site), 1, top_name, uplink});
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    PlatformNode node;
    node.name = plan.nodes[r].name;
    PlatformGroup cores;
    cores.name = "cpu";
    cores.count = cpus_of(plan_of_node(plan, r));
    cores.watts = {assumed_watts_per_cpu, assumed_watts_per_cpu};
    cores.costs.profile =
        r < network.profiles.size() && !network.profiles[r].empty() ? network.profiles[r] : here;
    node.groups.push_back(std::move(cores));
    node.attached = different.size() == 1 ? top_name : switch_name(sites[r]);
    node.link = LinkSpeed{fastest(links, r, near[r]), latency[r]};
    platform.nodes.push_back(std::move(node));
  }
  return platform;
}

}  // namespace regatta::app
