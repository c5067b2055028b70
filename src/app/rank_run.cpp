#include "app/rank_run.h"

#include <iostream>

#include "app/train_flags.h"
#include "base/error.h"

namespace regatta::app {

void add_rank_flags(CLI::App& app, RankFlags& flags) {
  app.add_option(
         "--update", flags.update,
         "how gradients of several ranks come together: auto (default: what is predicted\n"
         "fastest for the links), ring, tree, hierarchical, server:cpu, replicated, mpi or\n"
         "chain (default of --deterministic)")
      ->check(CLI::IsMember(
          {"auto", "ring", "tree", "hierarchical", "server:cpu", "replicated", "chain", "mpi"}));
  app.add_option(
         "--replan", flags.replan,
         "on: shares of several ranks are planned anew when other ones would be faster for\n"
         "a while (default where they were measured at the start); off: they stay")
      ->check(CLI::IsMember({"on", "off"}));
}

TrainFlags flags_of_rank(TrainFlags flags) {
  flags.shares.reset();
  flags.granularity = "fixed";
  if (!flags.job.plan.deterministic) flags.chunks.reset();
  return flags;
}

RankRequest rank_request(const TrainFlags& flags) {
  RankRequest request;
  request.shares = flags.shares;
  if (flags.ranks.update && *flags.ranks.update != "auto")
    request.update = node_update_named(*flags.ranks.update);
  if (flags.chunks && !flags.resume) request.chunks = parse_sizes("--chunks", *flags.chunks);
  request.workers = flags.job.workers.value_or(default_workers());
  return request;
}

bool replans(const TrainFlags& flags) {
  const bool traced = flags.trace.trace || flags.trace.steps;
  if (flags.ranks.replan == "on" && traced)
    throw InputError("--replan on and --trace exclude each other: a record is of one plan");
  if (flags.ranks.replan) return *flags.ranks.replan == "on";
  return !traced && !flags.placement.plan && flags.shares.value_or("speed") == "speed";
}

void on_all_ranks(Ranks* ranks, const std::function<void()>& action) {
  if (!ranks) return action();
  std::string failure;
  try {
    action();
  } catch (const std::exception& error) {  // whatever it is, the others wait
    failure = error.what();
  }
  ranks->agree(failure);
}

void train_with_others(Ranks* ranks, std::optional<Executor>& executor,
                       const std::function<void()>& train,
                       const std::function<std::string()>& way_back) {
  if (!ranks) return train();
  try {
    train();
  } catch (const RankSilent& silent) {
    // MPI_Finalize would wait for the silent rank, so the process ends without it.
    const bool speaks = ranks->first() || std::string(silent.what()).starts_with(ranks->names()[0]);
    if (speaks) std::cerr << "\nregatta: " << silent.what() << way_back() << std::endl;
    ranks->transport()->end_all(try_again_code);
  } catch (const RankFailed&) {
    throw ToldElsewhere();
  } catch (const ToldElsewhere&) {
    throw;
  } catch (const std::exception& error) {
    if (executor) executor->give_up(error.what());
    throw InputError(ranks->first() ? error.what() : ranks->name() + ": " + error.what());
  }
}

}  // namespace regatta::app
