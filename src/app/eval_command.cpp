// `eval` and `predict`: the same forward pass, reported or kept.
#include <cstring>
#include <iostream>

#include "app/command.h"
#include "base/error.h"
#include "base/files.h"
#include "data/npy.h"
#include "data/skips.h"
#include "models/load.h"
#include "platform/machine.h"
#include "train/checkpoint.h"
#include "train/job.h"
#include "train/loop.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct EvalFlags {
  std::optional<std::string> run, model, weights, data, input, json_file, out;
  std::optional<std::int64_t> classes;
  std::optional<int> workers;
  std::int64_t batch = 64;
  std::string split = "test", devices = "cpu";
  bool best = false, strict = false;
};

void declare(CLI::App& app, EvalFlags& flags) {
  app.add_option("--run,run", flags.run, "a run folder of regatta train: its newest checkpoint")
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

struct Evaluated {
  Evaluation evaluation;
  SkippedSamples skipped;
  std::int64_t samples = 0, classes = 0;
};

// What is evaluated, and how its images are prepared.
struct Subject {
  Recipe recipe;
  Graph graph;                          // fused
  std::optional<Weights> weights = {};  // if the model's file holds them
};

Subject subject_of(const EvalFlags& flags, std::uint64_t seed) {
  if (flags.run && (flags.model || flags.input || flags.classes))
    throw InputError("--run tells --model, --input and --classes itself: drop them");
  if (flags.best && (!flags.run || flags.weights))
    throw InputError("--best is the best checkpoint of a run: give it --run, without --weights");
  if (flags.run) {
    TrainJob job = read_run_json(*flags.run).job;
    return {job.recipe, std::move(job.graph)};
  }
  const bool whole = flags.model && flags.model->ends_with(".onnx");  // weights and all
  if (!flags.model || !(flags.weights || whole) || !flags.data)
    throw InputError("give either --run RUN, or --model, --weights and --data");
  const Split split = flags.split == "train" ? Split::train : Split::test;
  ModelOptions wanted{.input = {}, .classes = flags.classes};
  if (flags.input) wanted.input = Shape::parse(*flags.input);
  // A file says which images it takes; a name takes what the data has.
  std::optional<LoadedModel> file;
  if (is_model_file(*flags.model)) {
    file = read_model_file(*flags.model, wanted);
    wanted.input = file->graph.node(file->graph.input()).shape;
  }
  const DatasetInfo info =
      open_dataset(*flags.data, {.split = split, .seed = seed, .input = wanted.input})->info();
  if (!wanted.input) wanted.input = info.sample;
  if (!wanted.classes) wanted.classes = info.classes;
  LoadedModel model = file ? std::move(*file) : LoadedModel{build_model(*flags.model, wanted)};
  Recipe recipe;
  recipe.model = *flags.model;
  recipe.input = model.graph.node(model.graph.input()).shape;
  recipe.classes = model.graph.classes();
  recipe.data = *flags.data;
  recipe.sample_dtype = info.dtype;
  recipe.normalisation = {info.scale, info.mean, info.deviation};
  recipe.seed = seed;
  return {recipe, fuse(model.graph), std::move(model.weights)};
}

fs::path weights_for(const EvalFlags& flags) {
  if (flags.weights) return *flags.weights;
  if (flags.best) return best_checkpoint(*flags.run) / "model.safetensors";
  std::vector<std::string> damaged;
  const fs::path checkpoint = latest_checkpoint(*flags.run, &damaged);
  for (const std::string& text : damaged)
    std::cerr << text << "; using " << checkpoint.string() << "\n";
  return checkpoint / "model.safetensors";
}

Evaluated evaluate_by(const EvalFlags& flags, bool keep_logits) {
  Subject subject = subject_of(flags, 1);
  Recipe& recipe = subject.recipe;
  const Graph& graph = subject.graph;
  const Split split = flags.split == "train" ? Split::train : Split::test;
  const auto data = open_for(recipe, flags.data.value_or(recipe.data), split, flags.strict);
  recipe.batch = std::min(flags.batch, data->info().count);

  PlanOptions options;
  options.workers = flags.workers ? *flags.workers : default_workers();
  options.cpus = available_cpus();
  options.layout = default_cpu_layout();
  options.devices = devices_named(flags.devices);
  const Plan plan = make_plan(graph, recipe, options);
  require_valid(plan, graph, recipe.batch);
  Executor executor(graph, plan,
                    {{recipe.sample_dtype, recipe.precision},
                     recipe.normalisation,
                     /*training=*/false});
  if (subject.weights && !flags.weights) {
    set_weights(executor, *subject.weights);
  } else {
    const fs::path weights = weights_for(flags);
    TensorFile file = read_safetensors(weights);
    // A run that averages its parameters is tested on the average.
    if (recipe.optimizer.ema > 0 && !flags.weights)
      file = averaged(std::move(file),
                      read_safetensors(weights.parent_path() / "optimizer.safetensors"));
    set_weights(executor, file, weights.string());
  }
  Evaluation evaluation = evaluate(executor, data, recipe.batch, keep_logits);
  for (const std::string& line : lines_of(data->skipped(), "sample")) std::cerr << line << "\n";
  return {std::move(evaluation), data->skipped(), data->info().count, recipe.classes};
}

}  // namespace

int run_eval(std::span<const char* const> arguments) {
  CLI::App app("Loss and accuracy of a trained network.", "regatta eval");
  EvalFlags flags;
  declare(app, flags);
  app.footer(
      "Example:\n  regatta eval --run runs/lenet5 --data mnist\n"
      "  regatta eval --model resnet18 --weights w.safetensors --data npy:x.npy,y.npy");
  if (!parse(app, arguments)) return 0;
  if (flags.json_file) require_writable(*flags.json_file);
  const Evaluated result = evaluate_by(flags, false);
  std::printf("loss %.6f, accuracy %.2f%% over %lld images\n", result.evaluation.loss,
              100 * result.evaluation.accuracy, static_cast<long long>(result.samples));
  write_json_result(flags.json_file, {{"loss", result.evaluation.loss},
                                      {"accuracy", result.evaluation.accuracy},
                                      {"samples", result.samples},
                                      {"skipped", to_json(result.skipped)}});
  return 0;
}

int run_predict(std::span<const char* const> arguments) {
  CLI::App app("A trained network's logits for every image, in order, as an npy file.",
               "regatta predict");
  EvalFlags flags;
  declare(app, flags);
  app.add_option("--out", flags.out, "where the logits go")->required()->type_name("LOGITS.npy");
  app.footer("Example:\n  regatta predict --run runs/lenet5 --data mnist --out logits.npy");
  if (!parse(app, arguments)) return 0;
  require_writable(*flags.out);
  if (flags.json_file) require_writable(*flags.json_file);
  const Evaluated result = evaluate_by(flags, true);
  const std::vector<float>& logits = result.evaluation.logits;
  NpyArray array{Dtype::f32, {result.samples, result.classes}, {}};
  array.bytes.assign(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
  write_npy(*flags.out, array);
  std::printf("%lld x %lld logits in %s\n", static_cast<long long>(result.samples),
              static_cast<long long>(result.classes), flags.out->c_str());
  write_json_result(flags.json_file, {{"out", *flags.out},
                                      {"samples", result.samples},
                                      {"classes", result.classes},
                                      {"accuracy", result.evaluation.accuracy},
                                      {"skipped", to_json(result.skipped)}});
  return 0;
}

}  // namespace regatta::app
