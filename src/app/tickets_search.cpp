// `tickets search`: makes a search, and works on it.
#include <algorithm>
#include <iostream>
#include <memory>

#include "app/command.h"
#include "app/lists.h"
#include "app/tickets_command.h"
#include "app/tickets_work.h"
#include "base/error.h"
#include "data/dataset.h"
#include "tickets/estimate.h"
#include "tickets/folder.h"
#include "train/job.h"
#include "train/loop.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using namespace tickets;

struct SearchFlags {
  std::string model, data, out, resets = "0", controls = "fresh,random", scope = "global",
                                by = "magnitude", lease = "30s";
  int levels = 0, masks = 0, seeds = 1;
  double rate = 0.2;
  std::int64_t epochs = 1;
  std::uint64_t seed = 1;
  bool no_work = false;
  WorkFlags work;
};

Search search_of(const SearchFlags& flags, const std::vector<std::string>& extras) {
  if ((flags.masks > 0) == (flags.levels > 0))
    throw InputError(
        "give --levels (each is pruned from the trained one before) or --masks (all are made from "
        "the dense network at once)");
  refuse_own_flags(extras);
  Search search;
  std::error_code code;
  const bool file = fs::exists(flags.model, code);
  search.train = {"--model", file ? fs::absolute(flags.model).string() : flags.model, "--data",
                  absolute_spec(flags.data)};
  search.train.insert(search.train.end(), extras.begin(), extras.end());
  const TrainFacts facts = facts_of(search.train);
  search.samples_per_step = facts.samples_per_step;
  search.steps_per_epoch = facts.steps_per_epoch;
  search.last_step = last_step_of(flags.epochs, std::nullopt, facts.steps_per_epoch);
  for (int i = 0; i < flags.seeds; ++i)
    search.seeds.push_back(flags.seed + static_cast<std::uint64_t>(i));
  search.resets = parse_resets(flags.resets, facts.steps_per_epoch);
  search.levels = std::max(flags.levels, flags.masks);
  search.iterative = flags.levels > 0;
  search.rate = flags.rate;
  search.scope = scope_named(flags.scope);
  search.by = criterion_named(flags.by);
  search.lease = parse_time("--lease", flags.lease);
  search.controls.clear();
  if (flags.controls != "none")
    for (const std::string& name : listed(flags.controls)) {
      if (name != "fresh" && name != "random")
        throw InputError("--controls " + flags.controls +
                         ": use fresh, random, fresh,random or none");
      const JobKind kind = kind_named(name);
      if (std::ranges::find(search.controls, kind) == search.controls.end())
        search.controls.push_back(kind);
    }
  search.jobs = make_jobs(search);
  return search;
}

}  // namespace

std::function<int()> declare_tickets_search(CLI::App& app) {
  const auto flags = std::make_shared<SearchFlags>();
  app.add_option("--model", flags->model, "as regatta train has it")
      ->required()
      ->type_name("NAME|FILE");
  app.add_option("--data", flags->data, "likewise")->required()->type_name("SPEC");
  app.add_option("--out", flags->out, "folder of the search; one that is there is gone on with")
      ->required()
      ->type_name("DIR");
  app.add_option("--levels", flags->levels, "iterative pruning: so many levels one after another")
      ->type_name("L")
      ->check(whole_number(1, 1000));
  app.add_option("--masks", flags->masks, "one-shot pruning: so many masks of the dense network")
      ->type_name("M")
      ->check(whole_number(1, 1000));
  app.add_option("--rate", flags->rate, "part of the remaining weights that a level removes")
      ->type_name("X")
      ->check(number(1e-6, 1 - 1e-6))
      ->capture_default_str();
  app.add_option("--resets", flags->resets,
                 "steps, or epochs such as 2e, whose weights tickets start from")
      ->type_name("N|Ne,...")
      ->capture_default_str();
  app.add_option("--seeds", flags->seeds, "repetitions")
      ->type_name("S")
      ->check(whole_number(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", flags->seed, "the first of the seeds")
      ->type_name("N")
      ->check(whole_number(0, INT64_MAX / 2))
      ->capture_default_str();
  app.add_option("--epochs", flags->epochs, "of the dense run; tickets end where it ends")
      ->type_name("E")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option(
         "--controls", flags->controls,
         "fresh: a ticket's mask with new weights; random: a random mask with the ticket's\n"
         "weights; or none")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--scope", flags->scope, "of pruning, as regatta tickets prune has it")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--by", flags->by, "likewise: magnitude, magnitude-increase or random")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--lease", flags->lease,
                 "a worker that was not heard of for so long is taken for gone")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_flag("--no-work", flags->no_work, "make the folder, and leave the jobs to other workers");
  declare_work(app, flags->work);
  app.allow_extras();
  app.footer(
      "All other flags are those of regatta train, and go to every job.\n"
      "Example:\n  regatta tickets search --model lenet5 --data mnist --levels 8 --rate 0.4 "
      "--resets 0,1e \\\n    --seeds 2 --epochs 2 --lr 0.02 --deterministic --out "
      "searches/lenet5");
  return [flags, &app] {
    const Search search = search_of(*flags, app.remaining());
    DiskLayer files;
    SearchFolder::write(files, flags->out, search);
    if (flags->no_work) {
      std::cout << search.jobs.size() << " jobs in " << flags->out
                << "; start workers with: regatta tickets work " << flags->out << "\n";
      write_search_result(flags->work.json_file, flags->out, search.jobs.size(), 0);
      return 0;
    }
    return work_on(flags->out, flags->work);
  };
}

}  // namespace regatta::app
