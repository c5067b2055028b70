// `tickets estimate`: how long a search takes, before it begins or while it goes on.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/command.h"
#include "app/tickets_command.h"
#include "base/error.h"
#include "optimize/rent.h"
#include "platform/platform.h"
#include "tickets/estimate.h"
#include "tickets/folder.h"
#include "tickets/status.h"

namespace regatta::app {
namespace {

using namespace tickets;

struct EstimateFlags {
  std::optional<std::string> folder, platform, json_file, workers, epoch_time;
  int masks = 0, levels = 0, resets = 1, seeds = 1;
  double epochs = 1;
};

// A node of a platform as one worker.
struct Machine {
  std::string name;
  double flops = 0;
  Watts watts;  // of all its devices
  Price price;
  double energy_price = 0;  // of a kilowatt-hour
};

std::vector<Machine> machines_of(const std::string& file) {
  const Platform platform = read_platform(file);
  std::vector<Machine> machines;
  for (const PlatformNode& node : platform.nodes) {
    Machine machine{node.name, 0, {}, node.price.value_or(Price{}), platform.energy_price};
    for (const PlatformGroup& group : node.groups) {
      if (group.costs.flops <= 0)
        throw InputError("'" + file + "': '" + group.name + "' of '" + node.name +
                         "' tells no flops, and nothing says how fast the machine is; give "
                         "--workers with speeds, such as 19x1,0.5");
      machine.flops += group.count * group.costs.flops;
      machine.watts.idle += group.count * group.watts.idle;
      machine.watts.active += group.count * group.watts.active;
    }
    for (int i = 0; i < node.count; ++i) {
      machines.push_back(machine);
      if (node.count > 1) machines.back().name += "-" + std::to_string(i);
    }
  }
  return machines;
}

// The price of a machine that works for so long; a machine without a job is not rented.
double money_of(const Machine& machine, Seconds busy, double joules) {
  const double hours = busy.count() / 3600;
  const Price& price = machine.price;
  if (hours <= 0 && price.rented()) return 0;
  const double value_per_hour =
      price.lifetime_hours > 0 ? price.purchase / price.lifetime_hours : 0;
  const double energy = price.rented() ? 0 : joules / 3.6e6 * machine.energy_price;
  return optimize::money_for(hours, price.per_hour, price.minimum_hours, value_per_hour, energy);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

void print(const SearchEstimate& result, std::size_t workers) {
  std::printf("alone       %s\n", time_text(result.alone).c_str());
  std::printf("together    %s on %zu worker%s\n", time_text(result.together).c_str(), workers,
              workers == 1 ? "" : "s");
  std::printf("ideal       %s, if jobs could be cut\n", time_text(result.ideal).c_str());
  std::printf("speed-up    %.4g\n", result.speed_up());
  std::printf("efficiency  %.4g of the ideal\n", result.efficiency());
  if (result.together > result.ideal * 1.0001 && result.longest_chain > result.together * 0.9999)
    std::printf(
        "the longest chain of jobs that wait for each other takes as long: more workers do "
        "not help\n");
}

Json to_json(const SearchEstimate& result) {
  return {{"jobs", result.jobs},
          {"alone_s", result.alone.count()},
          {"together_s", result.together.count()},
          {"ideal_s", result.ideal.count()},
          {"longest_chain_s", result.longest_chain.count()},
          {"speed_up", result.speed_up()},
          {"efficiency", result.efficiency()}};
}

// What is left of a search, with the speeds its workers were measured at.
int of_folder(const EstimateFlags& flags) {
  DiskLayer files;
  SearchFolder folder(files, *flags.folder);
  folder.refresh();
  const std::map<std::string, double> speeds = measured_speeds(folder);
  if (speeds.empty())
    throw InputError("'" + *flags.folder +
                     "' has no finished job yet, so no speed is measured; let a worker finish one");
  const std::vector<JobWork> left = work_left(folder);
  double fastest = 0;
  std::vector<WorkerSpeed> workers;
  for (const auto& [machine, speed] : speeds) {
    std::printf("%-32s %10.0f images/s\n", machine.c_str(), speed);
    workers.push_back({speed, {}});
    fastest = std::max(fastest, speed);
  }
  // Speeds that are asked for are beside that of the fastest machine seen.
  if (flags.workers) {
    workers = parse_speeds("--workers", *flags.workers);
    for (WorkerSpeed& worker : workers) worker.speed *= fastest;
  }
  std::vector<JobWork> in_seconds = left;
  for (JobWork& job : in_seconds) job.work /= fastest;
  for (WorkerSpeed& worker : workers) worker.speed /= fastest;
  std::printf("%zu of %zu jobs are left\n", left.size(), folder.jobs().size());
  Json json{{"left", left.size()}, {"jobs", folder.jobs().size()}, {"images_per_s", speeds}};
  if (!left.empty()) {
    const SearchEstimate result = estimate(in_seconds, workers);
    print(result, workers.size());
    json.update(to_json(result));
  }
  write_json_result(flags.json_file, json);
  return 0;
}

int of_size(const EstimateFlags& flags) {
  if (!flags.epoch_time)
    throw InputError(
        "tickets estimate needs --epoch-time, such as 4.5m, or the folder of a search");
  if ((flags.masks > 0) == (flags.levels > 0))
    throw InputError("give --masks (made at once) or --levels (each waits for the one before)");
  if (flags.workers && flags.platform)
    throw InputError("--workers and --platform exclude each other; give one");
  const SearchSize size{flags.masks, flags.levels, flags.resets,
                        flags.seeds, flags.epochs, parse_time("--epoch-time", *flags.epoch_time)};
  std::vector<Machine> machines;
  std::vector<WorkerSpeed> workers;
  if (flags.platform) {
    machines = machines_of(*flags.platform);
    double fastest = 0;
    for (const Machine& machine : machines) fastest = std::max(fastest, machine.flops);
    for (const Machine& machine : machines) workers.push_back({machine.flops / fastest, {}});
  } else {
    workers = parse_speeds("--workers", flags.workers.value_or("1"));
  }
  const std::vector<JobWork> jobs = jobs_of(size);
  const SearchEstimate result = estimate(jobs, workers);
  std::printf("%zu jobs of %s: %d %s x %d reset point%s x %d seed%s, %s epochs of %s\n",
              jobs.size(), time_text(size.epochs * size.epoch_time).c_str(),
              std::max(size.masks, size.levels), size.masks > 0 ? "masks" : "levels", size.resets,
              size.resets == 1 ? "" : "s", size.seeds, size.seeds == 1 ? "" : "s",
              number(size.epochs).c_str(), time_text(size.epoch_time).c_str());
  print(result, workers.size());
  Json json = to_json(result);
  if (!machines.empty()) {
    Json rows = Json::array();
    double all = 0, money = 0;
    std::printf("\n%-20s %6s %5s %14s %12s\n", "machine", "speed", "jobs", "busy", "energy");
    for (std::size_t i = 0; i < machines.size(); ++i) {
      const Machine& machine = machines[i];
      const double joules = machine.watts.active * result.busy[i].count() +
                            machine.watts.idle * (result.together - result.busy[i]).count();
      all += joules;
      const double cost = money_of(machine, result.busy[i], joules);
      money += cost;
      if (i < 20)
        std::printf("%-20s %6.2f %5d %14s %8.3g kWh\n", machine.name.c_str(), workers[i].speed,
                    result.done[i], time_text(result.busy[i]).c_str(), joules / 3.6e6);
      rows.push_back({{"machine", machine.name},
                      {"speed", workers[i].speed},
                      {"jobs", result.done[i]},
                      {"busy_s", result.busy[i].count()},
                      {"joules", joules},
                      {"money", cost}});
    }
    if (machines.size() > 20) std::printf("and %zu more; --json has all\n", machines.size() - 20);
    std::printf("all together %.4g kWh (speeds by the platform's FLOP/s: estimates)\n",
                all / 3.6e6);
    json["machines"] = rows;
    json["joules"] = all;
    json["money"] = money;
    if (money > 0) std::printf("money       %.2f, by the platform's prices\n", money);
  }
  write_json_result(flags.json_file, json);
  return 0;
}

}  // namespace

std::function<int()> declare_tickets_estimate(CLI::App& app) {
  const auto flags = std::make_shared<EstimateFlags>();
  app.add_option("folder", flags->folder, "a search: what is left of it, from measured speeds")
      ->type_name("DIR");
  app.add_option("--masks", flags->masks, "masks made at once from the dense network")
      ->type_name("M")
      ->check(whole_number(1, 1000000));
  app.add_option("--levels", flags->levels, "instead: levels of iterative pruning")
      ->type_name("L")
      ->check(whole_number(1, 1000000));
  app.add_option("--resets", flags->resets, "reset points")
      ->type_name("N")
      ->check(whole_number(1, 100000))
      ->capture_default_str();
  app.add_option("--seeds", flags->seeds, "repetitions")
      ->type_name("S")
      ->check(whole_number(1, 100000))
      ->capture_default_str();
  app.add_option("--epochs", flags->epochs, "epochs of each ticket")
      ->type_name("E")
      ->check(app::number(1e-6, 1e9))
      ->capture_default_str();
  app.add_option("--epoch-time", flags->epoch_time,
                 "time of an epoch on a worker of speed 1, or on the platform's fastest machine")
      ->type_name("TIME");
  app.add_option("--workers", flags->workers,
                 "how many, or their speeds with counts, such as 19x1,0.5 (default 1)")
      ->type_name("N|SPEEDS");
  app.add_option("--platform", flags->platform,
                 "a platform's file: every node is a worker, as fast as its FLOP/s")
      ->type_name("FILE");
  add_json_flag(app, flags->json_file);
  app.footer(
      "Example:\n  regatta tickets estimate --masks 20 --resets 5 --epochs 350 --epoch-time 4.5m "
      "--workers 20");
  return [flags] { return flags->folder ? of_folder(*flags) : of_size(*flags); };
}

}  // namespace regatta::app
