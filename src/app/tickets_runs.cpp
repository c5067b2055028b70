#include "app/tickets_runs.h"

#include <filesystem>

#include "app/command.h"
#include "data/dataset.h"
#include "train/loop.h"

namespace regatta::app {

namespace fs = std::filesystem;
using namespace tickets;

void declare_runs(CLI::App& app, RunsFlags& flags, const std::string& runs) {
  app.add_option("--model", flags.model, "as regatta train has it")
      ->required()
      ->type_name("NAME|FILE");
  app.add_option("--data", flags.data, "as regatta train has it")->required()->type_name("SPEC");
  app.add_option("--out", flags.out, "folder of the search; one that is there is gone on with")
      ->required()
      ->type_name("DIR");
  app.add_option("--resets", flags.resets,
                 "steps, or epochs such as 2e, whose weights " + runs + " start from")
      ->type_name("N|Ne,...")
      ->capture_default_str();
  app.add_option("--seeds", flags.seeds, "repetitions")
      ->type_name("S")
      ->check(whole_number(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "the first of the seeds")
      ->type_name("N")
      ->check(whole_number(0, INT64_MAX / 2))
      ->capture_default_str();
  app.add_option("--epochs", flags.epochs, "of the dense run; " + runs + " end where it ends")
      ->type_name("E")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  declare_work(app, flags.work);
  app.allow_extras();
}

Search search_without_jobs(const RunsFlags& flags, const std::vector<std::string>& extras) {
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
  search.resets = parse_resets(flags.resets, facts.steps_per_epoch);
  for (int i = 0; i < flags.seeds; ++i)
    search.seeds.push_back(flags.seed + static_cast<std::uint64_t>(i));
  return search;
}

}  // namespace regatta::app
