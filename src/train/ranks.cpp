#include "train/ranks.h"

#include <sched.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>

#include "base/version.h"
#include "exec/teams.h"
#include "exec/versions.h"
#include "plan/rank_nodes.h"
#include "plan/rank_plan.h"
#include "plan/shares.h"
#include "platform/machine.h"
#include "tasks/exchange_time.h"
#include "train/batches.h"
#include "train/loop.h"
#include "train/rank_memory.h"
#include "train/rank_part.h"
#include "train/weights.h"
#include "transport/collectives.h"
#include "transport/links.h"

namespace regatta {
namespace {

std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (const int each : numbers) text += std::to_string(each) + " ";
  return text;
}

std::string short_text(const Json& value) {
  constexpr std::size_t longest = 60;
  const std::string text = value.is_null() ? "missing" : value.dump();
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

// Appends "KEY is A instead of B" for each value that differs; keys of inner objects and numbers of
// entries follow after a dot.
void add_differences(const std::string& key, const Json& value, const Json& instead,
                     std::vector<std::string>& found) {
  if (value == instead) return;
  const auto inner = [&](const auto& name) { return (key.empty() ? "" : key + ".") + name; };
  if (value.is_object() && instead.is_object()) {
    for (const auto& [name, each] : value.items())
      add_differences(inner(name), each, instead.value(name, Json()), found);
    for (const auto& [name, each] : instead.items())
      if (!value.contains(name)) add_differences(inner(name), Json(), each, found);
  } else if (value.is_array() && instead.is_array() && value.size() == instead.size()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      add_differences(inner(std::to_string(i)), value[i], instead[i], found);
  } else {
    found.push_back(key + " is " + short_text(value) + " instead of " + short_text(instead));
  }
}

std::string listed_differences(const Json& object, const Json& instead) {
  constexpr std::size_t most = 4;
  std::vector<std::string> found;
  add_differences("", object, instead, found);
  std::string text;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i) text += (i ? ", " : "") + found[i];
  if (found.size() > most) text += " and " + std::to_string(found.size() - most) + " more";
  return text;
}

// Samples a second of this process by itself, while the others measure theirs. A few steps of the
// real data, after one to warm up.
double measured_speed(const TrainJob& job, const Plan& plan, std::int64_t share) {
  constexpr int most_steps = 8;
  constexpr Seconds longest{1.5};
  ExecOptions options = job.exec_options(true);
  options.ranks = {};
  Executor executor(job.graph, plan, options);
  initialise_weights(executor, job.recipe.seed);
  const Visits visits{job.data, std::make_shared<const std::vector<std::int64_t>>(
                                    job.data->order(job.recipe.seed, 0, job.recipe.shuffle))};
  std::vector<double> seconds;
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step <= most_steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    StepInput input = train_batch(visits, 0, share, job.recipe, 0);
    input.learning_rate = 0;
    executor.wait(executor.submit(ListKind::train, std::move(input)));
    const auto end = std::chrono::steady_clock::now();
    if (step > 0) seconds.push_back(Seconds(end - start).count());
    if (step > 1 && end - begin > longest) break;
  }
  std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
  return static_cast<double>(share) / seconds[seconds.size() / 2];
}

// What a rank tells the first one of itself.
Json resources_here(const TrainJob& job, const RankRequest& request) {
  return {{"workers", request.workers},
          {"layout", layout_name(job.plan.nodes.front().groups.front().layout)}};
}

// Samples of each rank as asked for; empty: as fast as each is.
std::vector<std::int64_t> asked_shares(const RankRequest& request, const TrainJob& job, int ranks) {
  // A list has the samples of each rank's chunks, so it says how large a share is as well.
  if (request.shares && request.chunks && request.chunks->size() > 1)
    throw InputError(
        "--chunks with a list of sizes makes all ranks' shares alike: drop --shares, "
        "or give --chunks one number");
  const std::string text = request.shares.value_or("speed");
  if (text == "speed") return {};
  if (text == "equal") return equal_chunks(job.recipe.batch, ranks, granule_of(job.graph));
  std::vector<std::int64_t> shares;
  std::istringstream numbers(text);
  for (std::string each; std::getline(numbers, each, ',');) {
    if (each.empty() || each.size() > 9 ||
        each.find_first_not_of("0123456789") != std::string::npos)
      throw InputError("--shares " + text +
                       ": over several ranks use equal, speed, or samples of each such as 3,5");
    shares.push_back(std::stoll(each));
  }
  return shares;
}

// As all ranks measured them together.
RankLinks links_of(Ranks& ranks) {
  RankLinks links;
  for (const std::vector<MeasuredLink>& row : measure_links(*ranks.transport())) {
    links.emplace_back();
    for (const MeasuredLink& each : row) links.back().push_back({each.bandwidth, each.latency});
  }
  return links;
}

// Of each bucket, in messages between ranks.
std::vector<double> bucket_bytes(const TrainJob& job) {
  std::vector<double> bytes;
  const Blueprint blueprint =
      make_blueprint(job.graph, plan_of_node(job.plan, 0), numbers_of(job.recipe), true);
  for (const Bucket& bucket : blueprint.buckets)
    bytes.push_back(static_cast<double>(blueprint.wire_bytes(bucket)));
  return bytes;
}

std::string predicted_text(NodeUpdate update, const std::vector<int>& sites, const RankLinks& links,
                           const std::vector<double>& buckets) {
  double seconds = 0, bytes = 0;
  for (const double each : buckets) {
    seconds += exchange_seconds(update, sites, links, each);
    bytes += each;
  }
  char text[100];
  std::snprintf(text, sizeof text, ", predicted to take %.3g ms for %.3g MB", 1e3 * seconds,
                1e-6 * bytes);
  return text;
}

// Throws InputError if this rank has too few CPUs for its part of a plan.
void require_fits_here(const Plan& part) {
  const int cpus = cpus_of(part), there = available_cpus();
  if (cpus > there)
    throw InputError("node '" + part.nodes.front().name + "' of the plan uses " +
                     std::to_string(cpus) + " CPUs, and this rank has " + std::to_string(there));
}

// Throws InputError that says what differs unless version, recipe and data are the same on all
// ranks. Says in a line on the first rank what may keep --deterministic from its promise.
void require_same_run(Ranks& ranks, const TrainJob& job) {
  ranks.require_same("version", std::string(version));
  Json recipe = job.recipe.to_json();
  // The same content may lie in different places.
  if (recipe.contains("data_identity")) {
    recipe["content of data"] = recipe["data_identity"];
    recipe.erase("data_identity");
    recipe.erase("data");
  }
  ranks.require_same_values("the recipe", recipe);
  ranks.require_same("--deterministic", job.plan.deterministic ? "given" : "not given");
  if (!job.plan.deterministic) return;
  Json kernels{{"processor", cpu_name()}};
  for (const auto& [library, which] : library_versions()) kernels[library] = which;
  const std::vector<std::string> all = ranks.gather(kernels.dump());
  for (std::size_t r = 1; ranks.first() && r < all.size(); ++r)
    if (all[r] != all[0])
      std::cerr << "--deterministic: " << ranks.names()[r] << " may compute other bits than "
                << ranks.names()[0]
                << " would: " << listed_differences(Json::parse(all[r]), Json::parse(all[0]))
                << "\n";
}

void require_shareable(const TrainJob& job, int ranks) {
  if (job.plan.nodes.front().groups.size() > 1)
    throw InputError("a rank has one device: name one in --devices, and start a rank for each");
  if (job.plan.placement == Placement::fixed)
    throw InputError("--placement static is for one process: use dynamic or hybrid");
  const std::int64_t granule = granule_of(job.graph);
  if ((job.recipe.batch + granule - 1) / granule < ranks)
    throw InputError("--batch " + std::to_string(job.recipe.batch) + " is less than a " +
                     (granule > 1 ? "group of batch norm" : "sample") + " for each of " +
                     std::to_string(ranks) + " ranks");
}

}  // namespace

std::vector<int> cpus_of_rank(const std::vector<int>& allowed, int i, int ranks) {
  const int count = static_cast<int>(allowed.size());
  const int first = count * i / ranks;
  const int last = std::max(count * (i + 1) / ranks, first + 1);
  return {allowed.begin() + first, allowed.begin() + last};
}

std::unique_ptr<Ranks> Ranks::join(const PresenceTimes& times) {
  if (!launch_environment()) return nullptr;
  return std::unique_ptr<Ranks>(new Ranks(open_mpi(), times));
}

Ranks::Ranks(std::shared_ptr<Transport> transport, const PresenceTimes& times)
    : transport_(std::move(transport)), times_(times) {
  hosts_ = gather_texts(*transport_, host_name());
  std::map<std::string, int> numbers, ranks_on;
  // Nodes that one kernel makes up have host names of their own; machines that containers make look
  // alike have kernels of their own.
  for (const std::string& mark : gather_texts(*transport_, host_name() + " " + kernel_mark())) {
    const auto [found, fresh] = numbers.try_emplace(mark, static_cast<int>(numbers.size()));
    machines_.push_back(found->second);
  }
  for (std::size_t r = 0; r < hosts_.size(); ++r) {
    names_.push_back("rank " + std::to_string(r) + " on " + hosts_[r]);
    const int local = ranks_on[hosts_[r]]++;
    const bool alone = std::ranges::count(hosts_, hosts_[r]) == 1;
    node_names_.push_back(alone ? hosts_[r] : hosts_[r] + "-" + std::to_string(local));
  }
  presence_.emplace(
      transport_, [this](int rank) { fell_silent(rank); }, times_);
  take_own_cpus();
}

void Ranks::fell_silent(int rank) const {
  // The first rank, which others wait for, goes on without this one.
  if (training_is_over_ && rank > 0) return;
  if (first() || rank == 0)
    std::cerr << "\nregatta: " << names_[static_cast<std::size_t>(rank)]
              << " is silent; start the run again, by --resume if it has begun" << std::endl;
  transport_->end_all(try_again_code);
}

bool Ranks::lost(int rank) const { return first() && training_is_over_ && presence_->lost(rank); }

void Ranks::part(int code) {
  presence_->part();
  std::string left;
  for (int rank = 0; rank < size(); ++rank)
    if (lost(rank)) left += (left.empty() ? "" : ", ") + names_[static_cast<std::size_t>(rank)];
  if (!left.empty())
    // In one piece: other ranks print to the same terminal.
    std::cerr << "regatta: fell silent after the last step: " + left +
                     "; the weights are complete\n";
  transport_->end_within(left.empty() ? times_.silence : std::chrono::milliseconds(0), code);
}

void Ranks::take_own_cpus() {
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<std::string> all = gather_texts(*transport_, listed(allowed));
  const auto own = static_cast<std::size_t>(rank());
  int before = 0, sharing = 0;  // ranks of this machine that may use just the same CPUs
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (machines_[r] != machines_[own] || all[r] != all[own]) continue;
    if (r < own) ++before;
    ++sharing;
  }
  if (sharing > 1) stay_on(cpus_of_rank(allowed, before, sharing));
}

std::vector<std::string> Ranks::gather(const std::string& text) {
  return gather_texts(*transport_, text, [this](int rank) { return lost(rank); });
}

std::string Ranks::from_first(const std::string& text) { return text_of_first(*transport_, text); }

void Ranks::agree(const std::string& failure) {
  const std::vector<std::string> all = gather(failure);
  const auto found =
      std::ranges::find_if(all, [](const std::string& each) { return !each.empty(); });
  if (found == all.end()) return;
  if (!first()) throw ToldElsewhere();
  const bool everywhere =
      std::ranges::all_of(all, [&](const std::string& each) { return each == *found; });
  throw InputError(
      everywhere ? *found : names_[static_cast<std::size_t>(found - all.begin())] + ": " + *found);
}

void Ranks::require_same(const std::string& what, const std::string& text) {
  const std::vector<std::string> all = gather(text);
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    if (!first()) throw ToldElsewhere();
    throw InputError(names_[r] + " has " + what + " " + all[r] + ", " + names_[0] + " has " +
                     all[0] + "; all ranks need the same");
  }
}

void Ranks::require_same_values(const std::string& what, const Json& object) {
  const std::vector<std::string> all = gather(object.dump());
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    if (!first()) throw ToldElsewhere();
    throw InputError(names_[r] + " differs from " + names_[0] + " in " + what + ": " +
                     listed_differences(Json::parse(all[r]), Json::parse(all[0])) +
                     "; all ranks need the same");
  }
}

std::string share_among(Ranks& ranks, TrainJob& job, const RankRequest& request) {
  require_same_run(ranks, job);
  std::vector<std::int64_t> shares;
  std::string failure;
  // Whatever goes wrong on one rank is caught, because the others wait for its word.
  try {
    require_shareable(job, ranks.size());
    shares = asked_shares(request, job, ranks.size());
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ranks.agree(failure);
  ranks.require_same("--shares", Json(shares).dump());
  const PlanOptions options = options_of(job.plan, request);
  Json own = resources_here(job, request);
  if (shares.empty()) {
    Recipe part = job.recipe;
    part.batch = equal_chunks(job.recipe.batch, ranks.size(), granule_of(job.graph))[0];
    Plan plan;
    try {
      PlanOptions alone = options;
      alone.deterministic = false;
      alone.chunks = request.chunks;
      plan = make_plan(job.graph, part, alone);
      require_valid(plan, job.graph, part.batch);
      keep_the_rest(plan, job.plan);
      keep_slow(plan, job.plan.nodes.front().groups.front().slow);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    ranks.agree(failure);
    ranks.agree(memory_shortage(ranks, job, plan, Purpose::training));
    try {
      own["speed"] = measured_speed(job, plan, part.batch);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  ranks.agree(failure);
  const std::vector<std::string> all = ranks.gather(own.dump());
  RankLinks links;
  const bool open = !request.update && !options.deterministic;
  if (open || request.update == NodeUpdate::hierarchical) links = links_of(ranks);
  const std::vector<int> sites =
      links.empty() ? ranks.machines() : sites_of(ranks.machines(), links);
  std::string plan_text, remark;
  if (ranks.first()) try {
      std::vector<RankResources> resources;
      std::vector<double> speeds;
      for (std::size_t r = 0; r < all.size(); ++r) {
        const Json each = Json::parse(all[r]);
        resources.push_back({ranks.node_names()[r], each.at("workers").get<int>(),
                             layout_named(each.at("layout").get<std::string>())});
        if (shares.empty()) speeds.push_back(each.at("speed").get<double>());
      }
      if (shares.empty()) shares = shares_by_speed(speeds, job.recipe.batch, granule_of(job.graph));
      const std::string asked = request.shares.value_or("speed");
      if (options.deterministic && (asked == "speed" || asked == "equal"))
        shares = whole_chunk_shares(
            canonical_chunks(job.graph, job.recipe, options, resources.size()), shares);
      NodeUpdate update = request.update.value_or(NodeUpdate::chain);
      if (open) {
        const std::vector<double> buckets = bucket_bytes(job);
        update = fastest_update(sites, links, buckets);
        remark = predicted_text(update, sites, links, buckets);
      }
      Plan whole = plan_over_ranks(job.graph, job.recipe, options, resources, shares, update);
      keep_the_rest(whole, job.plan);
      require_no_fault(wire_hindrances(whole, job.recipe));
      require_valid(whole, job.graph, job.recipe.batch);
      plan_text = to_json(whole, job.graph).dump();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  // What is wrong with the plan is wrong for all: no rank is to blame.
  if (!ranks.from_first(failure).empty()) {
    if (!ranks.first()) throw ToldElsewhere();
    throw InputError(failure);
  }
  const std::vector<double> slow = job.plan.nodes.front().groups.front().slow;
  take_part(ranks, job, plan_from_json(Json::parse(ranks.from_first(plan_text)), job.graph), sites);
  keep_slow(job.plan, slow);
  return remark;
}

std::string follow_plan(Ranks& ranks, TrainJob& job) {
  require_same_run(ranks, job);
  ranks.require_same_values("the plan", to_json(job.plan, job.graph));
  std::string failure;
  Plan whole;
  RankNodes which;
  try {
    which = nodes_of_ranks(job.plan, ranks.hosts());
    std::vector<std::string> hindrances = rank_hindrances(job.plan);
    std::ranges::move(wire_hindrances(job.plan, job.recipe), std::back_inserter(hindrances));
    require_no_fault(hindrances);
    whole = in_rank_order(job.plan, which);
    require_fits_here(plan_of_node(whole, static_cast<std::size_t>(ranks.rank())));
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ranks.agree(failure);
  const std::vector<int> sites = whole.update == NodeUpdate::hierarchical
                                     ? sites_of(ranks.machines(), links_of(ranks))
                                     : ranks.machines();
  std::string text;
  for (std::size_t r = 0; r < which.nodes.size(); ++r)
    text += (r ? ", " : "") + ranks.names()[r] + " is node '" + whole.nodes[r].name + "'";
  text += which.by_host ? " by its name" : " by the order of the plan";
  take_part(ranks, job, std::move(whole), sites);
  return text;
}

void gather_on_one(TrainJob& job, int workers) {
  RankRequest request;
  request.workers = workers;
  const PlanOptions options = options_of(job.plan, request);
  Plan plan = make_plan(job.graph, job.recipe, options);
  keep_the_rest(plan, job.plan);
  plan.cpus = available_cpus();
  job.plan = std::move(plan);
}

std::string rank_line(const Plan& plan, const Recipe& recipe) {
  std::string text = std::to_string(plan.nodes.size()) + " ranks:";
  for (std::size_t r = 0; r < plan.nodes.size(); ++r) {
    const DeviceGroup& group = plan.nodes[r].groups.front();
    const int threads = group.workers * group.team;
    text += std::string(r ? "," : "") + " " + plan.nodes[r].name + " " +
            (group.kind == DeviceKind::cpu
                 ? std::to_string(threads) + (threads == 1 ? " CPU " : " CPUs ")
                 : "GPU ") +
            std::to_string(share_of(plan.nodes[r])) + " samples";
  }
  text += "; gradients meet by " + std::string(node_update_name(plan.update));
  if (recipe.wire_precision != Precision::fp32)
    text += " in " + std::string(precision_name(recipe.wire_precision));
  return text;
}

}  // namespace regatta
