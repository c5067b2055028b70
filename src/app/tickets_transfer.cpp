// `tickets transfer`: do tickets of one data set win on another?
#include <map>
#include <memory>

#include "app/command.h"
#include "app/lists.h"
#include "app/tickets_command.h"
#include "app/tickets_work.h"
#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/shell_word.h"
#include "data/dataset.h"
#include "tickets/folder.h"
#include "tickets/train_job.h"
#include "train/checkpoint.h"
#include "train/job.h"
#include "train/loop.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using namespace tickets;

struct TransferFlags {
  std::string folder, data, out;
  std::optional<std::string> levels;
  std::optional<std::int64_t> epochs;
  bool no_work = false;
  WorkFlags work;
};

// What the new search needs beside its jobs, by the file's place in its folder.
struct Files {
  std::map<std::string, fs::path> taken;      // masks and weights of the finished search
  std::map<std::string, std::uint64_t> made;  // weights that are drawn from this seed
  std::optional<Graph> network = {};          // whose weights these are
};

// A file that is there stays as it is: it must hold the same, or it belongs to a transfer from
// another search. Throws InputError.
void write_files(FileLayer& layer, const fs::path& folder, const Files& files) {
  for (const auto& [name, from] : files.taken) {
    const fs::path path = folder / name;
    layer.make_folder(path.parent_path());
    if (layer.create(path, read_file(from)) || sha256_of_file(path) == sha256_of_file(from))
      continue;
    throw InputError("'" + path.string() +
                     "' belongs to another transfer; name another folder with --out");
  }
  for (const auto& [name, seed] : files.made)
    if (!fs::exists(folder / name))
      write_safetensors(folder / name, new_weights(*files.network, seed));
}

// Which levels are taken over: those asked for, or all.
bool wanted(const TransferFlags& flags, int level) {
  if (!flags.levels) return true;
  for (const std::int64_t each : parse_sizes("--levels", *flags.levels))
    if (each == level) return true;
  return false;
}

// The new search; `files` gets the masks and weights that it takes over from the finished one.
Search search_of(const TransferFlags& flags, SearchFolder& source, Files& files) {
  Search search = source.search();
  for (std::size_t i = 0; i + 1 < search.train.size(); ++i)
    if (search.train[i] == "--data") search.train[i + 1] = absolute_spec(flags.data);
  const TrainFacts facts = facts_of(search.train);
  search.samples_per_step = facts.samples_per_step;
  search.steps_per_epoch = facts.steps_per_epoch;
  const std::int64_t epochs = flags.epochs.value_or(
      std::max<std::int64_t>(1, source.search().last_step / source.search().steps_per_epoch));
  search.last_step = last_step_of(epochs, std::nullopt, facts.steps_per_epoch);
  search.jobs.clear();
  std::optional<Graph>& network = files.network;  // for the new data
  for (const tickets::Job& ticket : source.jobs()) {
    const bool done = source.state(source.index_of(ticket.id)).done();
    if (ticket.kind == JobKind::dense)
      search.jobs.push_back({.id = ticket.id, .seed = ticket.seed, .steps = search.last_step});
    if (ticket.kind != JobKind::ticket || !done || !wanted(flags, ticket.level)) continue;
    const fs::path run = source.run_of(ticket.id);
    if (!network) {
      Json about = read_json(run / "run.json");
      about["recipe"] = facts.recipe;
      network = network_of_run(about);
    }
    const fs::path mask_file = run.parent_path() / "mask.safetensors";
    require_fit(read_mask(mask_file), *network,
                "'" + mask_file.string() + "', for '" + flags.data + "'");
    tickets::Job job{.id = ticket.id,
                     .kind = JobKind::ticket,
                     .seed = ticket.seed,
                     .reset = ticket.reset,
                     .level = ticket.level,
                     .keep = ticket.keep,
                     .steps = search.last_step,
                     .mask = "masks/" + ticket.id + ".safetensors",
                     .init = "weights/seed" + std::to_string(ticket.seed) + "-reset" +
                             std::to_string(ticket.reset) + ".safetensors"};
    files.taken[job.mask] = mask_file;
    files.taken[job.init] =
        kept_checkpoint(source.run_of(ticket.start), ticket.reset) / "model.safetensors";
    search.jobs.push_back(job);
    const std::string stem = ticket.id.substr(0, ticket.id.rfind('-') + 1);
    tickets::Job random = job, fresh = job;
    random.kind = JobKind::random;
    random.id = stem + "random";
    fresh.kind = JobKind::fresh;
    fresh.id = stem + "fresh";
    fresh.init = "weights/seed" + std::to_string(ticket.seed) + "-fresh.safetensors";
    files.made[fresh.init] = random_bits(ticket.seed, stream_of("fresh"), 0);
    search.jobs.push_back(random);
    search.jobs.push_back(fresh);
  }
  if (!network)
    throw InputError("'" + flags.folder +
                     "' has no finished ticket to take over; regatta tickets status " +
                     shell_word(flags.folder) + " shows how far it is");
  return search;
}

}  // namespace

std::function<int()> declare_tickets_transfer(CLI::App& app) {
  const auto flags = std::make_shared<TransferFlags>();
  app.add_option("folder", flags->folder, "the search whose tickets are taken")
      ->required()
      ->type_name("DIR");
  app.add_option("--data", flags->data,
                 "the other data: images of the same size, and as many classes")
      ->required()
      ->type_name("SPEC");
  app.add_option("--out", flags->out, "folder of the new search")->required()->type_name("DIR");
  app.add_option("--levels", flags->levels, "only these levels, such as 4,8 (default: all)")
      ->type_name("L,...");
  app.add_option("--epochs", flags->epochs, "on the other data (default: as many as before)")
      ->type_name("E")
      ->check(whole_number(1, 1000000));
  add_no_work_flag(app, flags->no_work);
  declare_work(app, flags->work);
  app.footer(
      "Every ticket starts with its own early weights, beside the same mask with new weights, a\n"
      "random mask, and the whole network.\n"
      "Example:\n  regatta tickets transfer searches/mnist --data fashion-mnist --out "
      "searches/fashion");
  return [flags] {
    DiskLayer files;
    SearchFolder source(files, flags->folder);
    source.refresh();
    Files taken;
    const Search search = search_of(*flags, source, taken);
    // The files come before the search, so that a worker which sees it finds them all.
    SearchFolder::require_same_or_none(files, flags->out, search);
    write_files(files, flags->out, taken);
    return make_search(flags->out, search, flags->no_work, flags->work);
  };
}

}  // namespace regatta::app
