#include "app/ticket_source.h"

#include <iostream>

#include "base/error.h"
#include "train/checkpoint.h"

namespace regatta::app {
namespace fs = std::filesystem;

TicketSource ticket_source(const std::string& from) {
  TicketSource source;
  const bool is_checkpoint = fs::exists(fs::path(from) / "model.safetensors");
  if (is_checkpoint) {
    // RUN/checkpoints/step-N; a slash at the end would hide the name.
    source.checkpoint = fs::absolute(fs::path(from) / ".").lexically_normal().parent_path();
    source.folder = source.checkpoint.parent_path().parent_path();
  } else {
    source.folder = from;
  }
  source.run = read_run_json(source.folder);
  if (!is_checkpoint) {
    std::vector<std::string> damaged;
    source.checkpoint = latest_checkpoint(source.folder, &damaged);
    for (const std::string& text : damaged)
      std::cerr << text << "; using " << source.checkpoint.string() << "\n";
  }
  const fs::path file = source.checkpoint / "model.safetensors";
  source.file = read_safetensors(file);
  // As eval has it: a run that averages its parameters is known by the average.
  if (source.run.job.recipe.optimizer.ema > 0)
    source.file = averaged(std::move(source.file),
                           read_safetensors(source.checkpoint / "optimizer.safetensors"));
  source.weights = weights_from(source.run.job.graph, source.file, file.string());
  return source;
}

void declare_ticket(CLI::App& app, std::string& from, std::optional<std::string>& mask) {
  app.add_option("run", from, "a run folder (its newest checkpoint), or a checkpoint of one")
      ->required()
      ->type_name("RUN|CHECKPOINT");
  app.add_option("--mask", mask, "the mask (default: the one that the run was trained with)")
      ->type_name("FILE");
}

Mask mask_of(const TicketSource& source, const std::optional<std::string>& file) {
  const TrainJob& job = source.run.job;
  if (file) {
    Mask mask = read_mask(*file);
    require_fit(mask, job.graph, *file);
    return mask;
  }
  if (!job.mask)
    throw InputError("'" + source.folder.string() +
                     "' was trained without a mask: give one with --mask FILE");
  return *job.mask;
}

}  // namespace regatta::app
