// `rent`: a training run on own machines beside rented ones.
#include <algorithm>
#include <iostream>

#include "app/command.h"
#include "app/model_job.h"
#include "app/optimized_candidate.h"
#include "app/optimized_plan.h"
#include "app/plan_answers.h"
#include "app/profiles.h"
#include "base/error.h"
#include "base/files.h"
#include "optimize/rent.h"
#include "report/text.h"

namespace regatta::app {
namespace {

struct RentFlags {
  ModelFlags network;
  std::int64_t images = 0, epochs = 1;
  std::optional<std::string> own;
  std::vector<std::string> offers;
  std::string objective = "cost";
  std::optional<std::string> json_file;
};

void declare(CLI::App& app, RentFlags& flags) {
  declare_model(app, flags.network);
  app.add_option("--images", flags.images, "of an epoch")
      ->required()
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--epochs", flags.epochs, "of the run")
      ->type_name("E")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--own", flags.own, "platform of machines that are there or would be bought")
      ->type_name("FILE");
  app.add_option("--offer", flags.offers, "platform of machines for rent; repeat it for several")
      ->required()
      ->type_name("FILE");
  app.add_option("--objective", flags.objective, "which plan each platform gets")
      ->check(CLI::IsMember({"time", "energy", "edp", "cost"}))
      ->capture_default_str();
  add_json_flag(app, flags.json_file);
  app.footer(
      "Example:\n  regatta rent --model resnet50 --images 1281167 --epochs 90 \\\n"
      "    --own mine.json --offer cloud.json");
}

struct Offer {
  optimize::RunCost cost;
  Optimized plan;
};

// Nodes of a platform that a plan uses.
std::int64_t nodes_used(const Plan& plan, const PlatformNode& node) {
  std::int64_t used = 0;
  for (int copy = 0; copy < node.count; ++copy)
    used += std::ranges::count(plan.nodes, node_name(node, copy), &PlanNode::name);
  return used;
}

Offer run_on(const std::string& file, const TrainJob& job, const RentFlags& flags) {
  constexpr double seconds_per_hour = 3600;
  const Platform platform = read_platform(file);
  OptimizeRequest request;
  request.objective = optimize::objective_named(flags.objective);
  request.images = flags.images * flags.epochs;
  NodeOptions nodes;
  nodes.plan.layout = default_cpu_layout();
  Offer made{{},
             optimized_plan(job.graph, job.recipe, platform,
                            profiles_for(platform, std::filesystem::path(file).parent_path()),
                            nodes, request)};
  if (!made.plan.has_prices)
    throw InputError("'" + file +
                     "' has no price: give its nodes a price, or the platform an "
                     "energy_price");
  optimize::RunCost& cost = made.cost;
  cost.platform = platform.name;
  const auto steps = static_cast<double>(made.plan.steps);
  double value_per_hour = 0;
  std::vector<std::pair<double, double>> rented;  // money an hour, least hours
  for (const PlatformNode& node : platform.nodes) {
    const auto used = static_cast<double>(nodes_used(made.plan.plan, node));
    if (!node.price || used == 0) continue;
    if (node.price->rented()) {
      cost.rent_per_hour += used * node.price->per_hour;
      rented.emplace_back(used * node.price->per_hour, node.price->minimum_hours);
      cost.minimum_hours = std::max(cost.minimum_hours, node.price->minimum_hours);
    } else {
      cost.purchase += used * node.price->purchase;
      value_per_hour += used * node.price->purchase / node.price->lifetime_hours;
    }
  }
  // How far costs may be off is how far the run may be.
  const double least = made.plan.low_share;
  const double hours = made.plan.predicted.step_s * steps / seconds_per_hour;
  const double joules = made.plan.predicted.energy_j * steps;
  const auto money = [&](double factor, double energy) {
    double sum = optimize::money_for(hours * factor, 0, 0, value_per_hour, energy * factor);
    for (const auto& [per_hour, least_hours] : rented)
      sum += optimize::money_for(hours * factor, per_hour, least_hours, 0, 0);
    return sum;
  };
  const double energy_money = std::max(0.0, made.plan.predicted.cost * steps - money(1, 0));
  cost.energy_money = energy_money;
  cost.hours = {hours * least, hours, hours / least};
  cost.joules = {joules * least, joules, joules / least};
  cost.money = {money(least, energy_money), money(1, energy_money), money(1 / least, energy_money)};
  return made;
}

Json to_json(const optimize::Range& range) {
  return {{"value", range.value}, {"low", range.low}, {"high", range.high}};
}

Json to_json(const Offer& offer) {
  return {{"platform", offer.cost.platform},
          {"hours", to_json(offer.cost.hours)},
          {"joules", to_json(offer.cost.joules)},
          {"money", to_json(offer.cost.money)},
          {"devices", uses_text(offer.plan)}};
}

std::string text_of(const Offer& offer, const char* what) {
  const auto range = [](const optimize::Range& each) {
    return formatted("%.4g (%.4g to %.4g)", each.value, each.low, each.high);
  };
  return std::string(what) + " " + offer.cost.platform + ": " + range(offer.cost.hours) +
         " hours, " + range(offer.cost.joules) + " J, " + range(offer.cost.money) + " money\n  " +
         uses_text(offer.plan) + "\n";
}

std::string verdict_text(optimize::Verdict verdict) {
  switch (verdict) {
    case optimize::Verdict::own:
      return "own";
    case optimize::Verdict::offer:
      return "offer";
    case optimize::Verdict::cannot_tell:
      break;
  }
  return "cannot tell";
}

}  // namespace

int run_rent(std::span<const char* const> arguments) {
  CLI::App app("Own machines or rented ones: hours, joules and money of a run, and break-even.",
               "regatta rent");
  RentFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;
  if (flags.json_file) require_writable(*flags.json_file);
  if (flags.images > INT64_MAX / flags.epochs)
    throw InputError("--images times --epochs is more than can be counted");
  const TrainJob job = job_of(flags.network);
  Json json{{"model", flags.network.model}, {"images", flags.images}, {"epochs", flags.epochs}};
  std::optional<Offer> own;
  std::string text;  // printed last: a simulation is a child process, which would print it again
  if (flags.own) {
    own = run_on(*flags.own, job, flags);
    json["own"] = to_json(*own);
    text += text_of(*own, "own  ");
  }
  json["offers"] = Json::array();
  for (const std::string& file : flags.offers) {
    const Offer offer = run_on(file, job, flags);
    Json entry = to_json(offer);
    text += text_of(offer, "offer");
    if (own) {
      const std::string verdict = verdict_text(optimize::cheaper(own->cost, offer.cost));
      const auto runs = optimize::break_even_runs(own->cost, offer.cost);
      entry["cheaper"] = verdict;
      entry["break_even_runs"] = runs ? Json(*runs) : Json();
      text += "  cheaper: " + verdict +
              (verdict == "cannot tell" ? ", the intervals overlap" : "") + "; buying " +
              (runs ? "pays after " + formatted("%.4g", *runs) + " such runs (" +
                          formatted("%.4g", *runs * own->cost.hours.value) + " hours)"
                    : std::string("never pays")) +
              "\n";
    }
    json["offers"].push_back(std::move(entry));
  }
  write_json_result(flags.json_file, json);
  std::cout << text;
  return 0;
}

}  // namespace regatta::app
