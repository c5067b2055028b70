// `tickets prune`: a mask of the weights that stay, by the weights of a trained network.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/command.h"
#include "app/ticket_source.h"
#include "app/tickets_command.h"
#include "base/error.h"
#include "base/files.h"
#include "tickets/prune.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

struct PruneFlags {
  std::string from, out, scope = "global", by = "magnitude";
  double keep = 1;
  std::uint64_t seed = 1;
  std::optional<std::string> previous, initial, json_file;
};

// The weights that the run began with.
Weights start_of(const TicketSource& source, const PruneFlags& flags) {
  const Graph& graph = source.run.job.graph;
  if (flags.initial) return weights_from(graph, read_safetensors(*flags.initial), *flags.initial);
  if (source.run.job.started_from)
    throw InputError("'" + source.folder.string() + "' started from the weights of '" +
                     *source.run.job.started_from + "': give them with --initial FILE");
  return initial_weights(graph, source.run.job.recipe.seed);
}

Json to_json(const Mask& mask) {
  Json layers = Json::array();
  for (const MaskTensor& tensor : mask.tensors)
    layers.push_back({{"name", tensor.name},
                      {"weights", tensor.count()},
                      {"kept", tensor.kept()},
                      {"density", tensor.density()}});
  return {{"model", mask.model}, {"fingerprint", mask.fingerprint()}, {"weights", mask.count()},
          {"kept", mask.kept()}, {"density", mask.density()},         {"layers", layers}};
}

int run_prune(const PruneFlags& flags) {
  tickets::PruneOptions options{.keep = flags.keep,
                                .scope = tickets::scope_named(flags.scope),
                                .by = tickets::criterion_named(flags.by),
                                .seed = flags.seed};
  if (flags.initial && options.by != tickets::Criterion::magnitude_increase)
    throw InputError("--initial goes with --by magnitude-increase");
  const TicketSource source = ticket_source(flags.from);
  const TrainJob& job = source.run.job;
  std::optional<Mask> previous = job.mask;
  if (flags.previous) {
    previous = read_mask(*flags.previous);
    require_fit(*previous, job.graph, *flags.previous);
  }
  if (previous) options.previous = &*previous;
  Weights initial;
  if (options.by == tickets::Criterion::magnitude_increase) {
    initial = start_of(source, flags);
    options.initial = &initial;
  }
  const Mask mask = tickets::prune(job.graph, source.weights, options);
  write_mask(flags.out, mask);
  for (const MaskTensor& tensor : mask.tensors)
    std::printf("%-40s %10lld of %10lld weights, %6.2f%%\n", tensor.name.c_str(),
                static_cast<long long>(tensor.kept()), static_cast<long long>(tensor.count()),
                100 * tensor.density());
  std::printf("%s: %lld of %lld weights stay (%.2f%%), by %s of %s\n", flags.out.c_str(),
              static_cast<long long>(mask.kept()), static_cast<long long>(mask.count()),
              100 * mask.density(), flags.by.c_str(), source.checkpoint.string().c_str());
  Json result = to_json(mask);
  result["mask"] = flags.out;
  result["checkpoint"] = source.checkpoint.string();
  write_json_result(flags.json_file, result);
  return 0;
}

}  // namespace

std::function<int()> declare_tickets_prune(CLI::App& app) {
  const auto flags = std::make_shared<PruneFlags>();
  app.add_option("run", flags->from, "a run folder (its newest checkpoint), or a checkpoint of one")
      ->required()
      ->type_name("RUN|CHECKPOINT");
  app.add_option("--keep", flags->keep,
                 "the part of all weights of convolutions and dense layers that stays; what was\n"
                 "masked before counts as gone")
      ->required()
      ->type_name("PART")
      ->check(number(0, 1));
  app.add_option("--scope", flags->scope,
                 "global: the best of all layers together; layer: the same part of each;\n"
                 "channel: whole output channels, the same part of each layer but the last")
      ->check(CLI::IsMember({"global", "layer", "channel"}))
      ->capture_default_str();
  app.add_option("--by", flags->by,
                 "magnitude; magnitude-increase, compared with the run's first weights; random")
      ->check(CLI::IsMember({"magnitude", "magnitude-increase", "random"}))
      ->capture_default_str();
  app.add_option("--seed", flags->seed, "of --by random")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--mask", flags->previous,
                 "weights that this mask lacks stay masked (default: the run's own, if any)")
      ->type_name("FILE");
  app.add_option("--initial", flags->initial,
                 "the first weights, for --by magnitude-increase of a run that began with --init")
      ->type_name("FILE");
  app.add_option("--out", flags->out, "the mask")->required()->type_name("FILE");
  add_json_flag(app, flags->json_file);
  app.footer(
      "Example:\n  regatta tickets prune runs/lenet5 --keep 0.2 --out mask.safetensors\n"
      "  regatta train --model lenet5 --data mnist --mask mask.safetensors");
  return [flags] { return run_prune(*flags); };
}

}  // namespace regatta::app
