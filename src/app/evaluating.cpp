#include "app/evaluating.h"

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "data/folder.h"
#include "data/skips.h"
#include "models/load.h"
#include "platform/machine.h"
#include "train/checkpoint.h"
#include "train/job.h"
#include "train/memory_check.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

Split split_of(const EvalFlags& flags) {
  return flags.split == "train" ? Split::train : Split::test;
}

// What is evaluated, and how its images are prepared.
struct Subject {
  Recipe recipe;
  Graph graph;                          // fused
  std::optional<Weights> weights = {};  // if the model's file holds them
  std::vector<std::string> class_names = {};
};

void require_sense(const EvalFlags& flags, bool has_data) {
  if (flags.run && (flags.model || flags.input || flags.classes))
    throw InputError("--run tells --model, --input and --classes itself: drop them");
  if (flags.best && (!flags.run || flags.weights))
    throw InputError("--best is the best checkpoint of a run: give it --run, without --weights");
  const bool whole = flags.model && flags.model->ends_with(".onnx");  // weights and all
  if (!flags.run && (!flags.model || !(flags.weights || whole) || !has_data))
    throw InputError("give either --run RUN, or --model, --weights and --data");
}

Subject subject_of(const EvalFlags& flags, const std::vector<std::string>& class_names,
                   const std::vector<std::string>& images) {
  if (flags.run) {
    TrainJob job = read_run_json(*flags.run).job;
    return {job.recipe, std::move(job.graph), {}, std::move(job.class_names)};
  }
  ModelOptions wanted{.input = {}, .classes = flags.classes};
  if (flags.input) wanted.input = Shape::parse(*flags.input);
  if (!wanted.classes && !class_names.empty() && !is_model_file(*flags.model))
    wanted.classes = std::ssize(class_names);
  // A file says which images it takes, and so does a name for photographs; otherwise a name takes
  // what the data has.
  std::optional<LoadedModel> model;
  if (is_model_file(*flags.model) || !images.empty()) {
    model = load_model(*flags.model, wanted);
    wanted.input = model->graph.node(model->graph.input()).shape;
  }
  DatasetOptions options{.split = split_of(flags), .seed = 1, .input = wanted.input};
  options.blank_unreadable = !images.empty();
  const DatasetInfo info =
      (images.empty() ? open_dataset(*flags.data, options) : files_dataset(images, options))
          ->info();
  if (!wanted.input) wanted.input = info.sample;
  if (!wanted.classes) wanted.classes = info.classes;
  if (!model) model = LoadedModel{build_model(*flags.model, wanted)};
  Recipe recipe;
  recipe.model = *flags.model;
  recipe.input = model->graph.node(model->graph.input()).shape;
  recipe.classes = model->graph.classes();
  recipe.data = flags.data.value_or("");
  recipe.sample_dtype = info.dtype;
  recipe.normalisation = {info.scale, info.mean, info.deviation};
  recipe.seed = 1;
  return {recipe, fuse(model->graph), std::move(model->weights), std::move(model->class_names)};
}

fs::path weights_file(const EvalFlags& flags) {
  if (flags.weights) return *flags.weights;
  if (flags.best) return best_checkpoint(*flags.run) / "model.safetensors";
  std::vector<std::string> damaged;
  const fs::path checkpoint = latest_checkpoint(*flags.run, &damaged);
  for (const std::string& text : damaged)
    std::cerr << text << "; using " << checkpoint.string() << "\n";
  return checkpoint / "model.safetensors";
}

std::shared_ptr<const Dataset> open_images(const Recipe& recipe,
                                           const std::vector<std::string>& images) {
  if (recipe.sample_dtype != Dtype::u8)
    throw InputError(
        "the network was trained on float32 samples, which image files do not have: give samples "
        "with --data");
  DatasetOptions options{.input = recipe.input};
  options.blank_unreadable = true;
  return files_dataset(images, options);
}

}  // namespace

void declare_evaluation(CLI::App& app, EvalFlags& flags, const std::string& run_names) {
  app.add_option(run_names, flags.run, "a run folder of regatta train: its newest checkpoint")
      ->type_name("FOLDER");
  app.add_flag("--best", flags.best, "the run's best checkpoint instead of its newest");
  app.add_option("--model", flags.model,
                 "a model by name or net.json, with --weights; or net.onnx, with its own")
      ->type_name("NAME|FILE");
  app.add_option("--weights,--init", flags.weights, "its weights (default: the run's or file's)")
      ->type_name("FILE");
  app.add_option("--data", flags.data, "data, as regatta train takes it (default: the run's)")
      ->type_name("SPEC");
  app.add_option("--split", flags.split, "which part of a named data set")
      ->check(CLI::IsMember({"train", "test"}))
      ->capture_default_str();
  app.add_option("--input", flags.input, "image size, if not the data's")->type_name("CxHxW");
  app.add_option("--classes", flags.classes, "classes, if not the data's")
      ->type_name("N")
      ->check(whole_number(2));
  app.add_option("--batch", flags.batch, "images at once")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "CPU workers (default: the CPUs this process may use)")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--devices", flags.devices, "where to compute")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--strict", flags.strict, "an image that cannot be read ends the run");
  add_json_flag(app, flags.json_file);
}

Evaluated evaluate_by(const EvalFlags& flags, bool keep_logits,
                      const std::vector<std::string>& images) {
  require_sense(flags, flags.data || !images.empty());
  // Weights of a file go before those of the run or the model's file, and so do their class names.
  TensorFile file;
  if (flags.weights) file = read_safetensors(*flags.weights);
  std::vector<std::string> names = class_names_of(file);
  Subject subject = subject_of(flags, names, images);
  if (names.empty()) names = subject.class_names;
  Recipe& recipe = subject.recipe;
  const auto data = images.empty() ? open_for(recipe, flags.data.value_or(recipe.data),
                                              split_of(flags), names, flags.strict)
                                   : open_images(recipe, images);
  recipe.batch = std::min(flags.batch, data->info().count);

  PlanOptions options;
  options.workers = flags.workers ? *flags.workers : default_workers();
  options.cpus = available_cpus();
  options.layout = default_cpu_layout();
  options.devices = devices_named(flags.devices);
  TrainJob job;
  job.recipe = recipe;
  // Nothing is trained, so nothing is remembered or blended.
  job.recipe.optimizer = {};
  job.recipe.mixup = 0;
  job.graph = std::move(subject.graph);
  job.plan = make_plan(job.graph, recipe, options);
  require_valid(job.plan, job.graph, recipe.batch);
  require_memory(job, job.plan, memory_limits(), Purpose::evaluation);
  Executor executor(job.graph, job.plan, job.exec_options(/*training=*/false));
  if (subject.weights && !flags.weights) {
    set_weights(executor, *subject.weights);
  } else {
    const fs::path weights = weights_file(flags);
    if (!flags.weights) file = read_safetensors(weights);
    // A run that averages its parameters is tested on the average.
    if (recipe.optimizer.ema > 0 && !flags.weights)
      file = averaged(std::move(file),
                      read_safetensors(weights.parent_path() / "optimizer.safetensors"));
    set_weights(executor, file, weights.string());
  }
  Evaluation evaluation = evaluate(executor, data, recipe.batch, keep_logits);
  return {std::move(evaluation), data, recipe.classes, std::move(names)};
}

}  // namespace regatta::app
