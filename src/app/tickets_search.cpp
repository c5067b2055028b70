// `tickets search`: makes a search, and works on it.
#include <algorithm>
#include <memory>

#include "app/command.h"
#include "app/lists.h"
#include "app/tickets_command.h"
#include "app/tickets_runs.h"
#include "base/error.h"
#include "tickets/estimate.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using namespace tickets;

struct SearchFlags {
  RunsFlags runs;
  std::string controls = "fresh,random", scope = "global", by = "magnitude", lease = "30s";
  int levels = 0, masks = 0;
  double rate = 0.2;
  bool no_work = false;
};

Search search_of(const SearchFlags& flags, const std::vector<std::string>& extras) {
  if ((flags.masks > 0) == (flags.levels > 0))
    throw InputError(
        "give --levels (each is pruned from the trained one before) or --masks (all are made from "
        "the dense network at once)");
  Search search = search_without_jobs(flags.runs, extras);
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
  declare_runs(app, flags->runs, "tickets");
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
  add_no_work_flag(app, flags->no_work);
  app.footer(
      "All other flags are those of regatta train, and go to every job.\n"
      "Example:\n  regatta tickets search --model lenet5 --data mnist --levels 8 --rate 0.4 "
      "--resets 0,1e \\\n    --seeds 2 --epochs 2 --lr 0.02 --deterministic --out "
      "searches/lenet5");
  return [flags, &app] {
    const Search search = search_of(*flags, app.remaining());
    return make_search(flags->runs.out, search, flags->no_work, flags->runs.work);
  };
}

}  // namespace regatta::app
