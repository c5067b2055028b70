#include <atomic>
#include <csignal>
#include <iostream>

#include "app/command.h"
#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  JobOptions job;
  std::optional<std::int64_t> epochs, steps;
  std::string reduction = "slots", shuffle = "on";
  std::string devices = "cpu", layout = "nhwc", precision = "fp32";
  std::optional<std::string> init, save_gradients, out, resume, json_file, input, chunks, shares,
      scheduler;
};

// "3" or "3,5"
std::vector<std::int64_t> parse_sizes(const std::string& flag, const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string piece = text.substr(begin, end - begin);
    if (piece.empty() || piece.size() > 9 ||
        piece.find_first_not_of("0123456789") != std::string::npos)
      throw InputError(flag + " " + text + ": use whole numbers, such as 3 or 3,5");
    sizes.push_back(std::stoll(piece));
    begin = end + 1;
  }
  return sizes;
}

void declare(CLI::App& app, TrainFlags& flags) {
  JobOptions& job = flags.job;
  app.add_option("--model", job.model, "tiny, lenet5, resnet18, resnet50 (regatta models)");
  app.add_option("--data", job.data,
                 "mnist, fashion-mnist, digits-synth, cifar10-synth, imagenet-synth, "
                 "idx:IMAGES,LABELS, npy:X.npy,Y.npy or synth:CxHxW/CLASSES@COUNT");
  app.add_option("--test", job.test, "data to test on after each epoch, or none");
  auto* epochs = app.add_option("--epochs", flags.epochs, "passes over the data (default 1)");
  app.add_option("--steps", flags.steps, "steps instead of epochs")
      ->excludes(epochs)
      ->check(CLI::PositiveNumber);
  epochs->check(CLI::PositiveNumber);
  app.add_option("--batch", job.batch, "images per step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lr", job.sgd.learning_rate, "learning rate")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--momentum", job.sgd.momentum, "momentum")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--weight-decay", job.sgd.weight_decay, "weight decay")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "of weights, order and synthetic data")->capture_default_str();
  app.add_option("--shuffle", flags.shuffle, "visit the data in a new order each epoch")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--input", flags.input, "image size, if not the data's")->type_name("CxHxW");
  app.add_option("--classes", job.classes, "classes, if not the data's")
      ->check(CLI::PositiveNumber);
  app.add_option("--init", flags.init, "start from these weights")->type_name("W.safetensors");
  app.add_option("--workers", job.workers, "CPU workers (default: the CPUs this process may use)")
      ->check(CLI::Range(1, 256));
  app.add_option("--chunks", flags.chunks, "cut the batch into N chunks, or into sizes such as 3,5");
  app.add_option("--devices", flags.devices, "cpu, cuda or cpu,cuda")->capture_default_str();
  app.add_option("--shares", flags.shares,
                 "samples of the batch for each of --devices, such as 8,56");
  app.add_option("--layout", flags.layout, "of images on GPUs: nhwc or nchw")
      ->check(CLI::IsMember({"nhwc", "nchw"}))
      ->capture_default_str();
  app.add_option("--precision", flags.precision, "fp32, or on GPUs tf32 or bf16")
      ->capture_default_str();
  app.add_option("--segments", job.plan.segments,
                 "gather operators: op, block, step or a number of segments");
  app.add_option("--reduction", flags.reduction, "how gradients come together: slots, redux, loop")
      ->capture_default_str();
  app.add_option("--scheduler", flags.scheduler, "StarPU scheduler (default eager)");
  app.add_flag("--deterministic", job.plan.deterministic,
               "the same bits for any number of workers and any scheduler");
  app.add_option("--save-gradients", flags.save_gradients, "write the first step's gradients")
      ->type_name("FILE");
  app.add_option("--out", flags.out, "run folder (default runs/MODEL-DATA-TIME)");
  app.add_option("--resume", flags.resume, "go on with this run, to --epochs or --steps");
  app.add_option("--json", flags.json_file, "write the result to FILE")->type_name("FILE");
  app.footer(
      "Example:\n  regatta train --model lenet5 --data mnist --epochs 3 --batch 64 --lr 0.02");
}

std::atomic<bool> interrupted = false;

// Shows progress and gathers what --json reports; the run folder hears everything too.
class Console : public TrainObserver {
 public:
  Console(RunFolder& folder, std::int64_t per_epoch, std::int64_t images, const TrainGoal& goal)
      : folder_(folder), per_epoch_(per_epoch), images_(images), goal_(goal), progress_(std::cerr) {}

  void on_step(const StepRecord& record) override {
    folder_.on_step(record);
    steps_.push_back(record);
    const double now = static_cast<double>(record.samples) / record.duration.count();
    rate_ = rate_ == 0 ? now : 0.95 * rate_ + 0.05 * now;
    progress_.update(state(record));
  }

  void on_epoch(const EpochRecord& record) override {
    folder_.on_epoch(record);
    epochs_.push_back(record);
    if (!steps_.empty()) progress_.finish_epoch(state(steps_.back()));
    char text[160];
    int length = std::snprintf(text, sizeof text, "epoch %lld: train loss %.4f, accuracy %.2f%%",
                               static_cast<long long>(record.epoch), record.train_loss,
                               100 * record.train_accuracy);
    if (record.test_accuracy)
      std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length),
                    "; test loss %.4f, accuracy %.2f%%", *record.test_loss,
                    100 * *record.test_accuracy);
    progress_.message(text);
  }

  void on_rest(std::int64_t step) override { folder_.on_rest(step); }
  bool stop() override { return interrupted; }

  const std::vector<StepRecord>& steps() const { return steps_; }
  const std::vector<EpochRecord>& epochs() const { return epochs_; }

 private:
  ProgressState state(const StepRecord& record) const {
    ProgressState state;
    state.epoch = (record.step - 1) / per_epoch_ + 1;
    state.epochs = (goal_.last_step - 1) / per_epoch_ + 1;
    const std::int64_t in_epoch = (record.step - 1) % per_epoch_ + 1;
    state.done = in_epoch == per_epoch_ ? images_ : in_epoch * (images_ / per_epoch_);
    state.total = images_;
    state.images_per_second = rate_;
    state.loss = record.loss;
    if (rate_ > 0)
      state.left = Seconds(static_cast<double>((goal_.last_step - record.step) * record.samples) /
                           rate_);
    return state;
  }

  RunFolder& folder_;
  std::int64_t per_epoch_, images_;
  const TrainGoal& goal_;
  Progress progress_;
  double rate_ = 0;
  std::vector<StepRecord> steps_;
  std::vector<EpochRecord> epochs_;
};

Json result_of(const TrainJob& job, const Executor& executor, const Console& console,
               const fs::path& folder) {
  Json steps = Json::array(), epochs = Json::array();
  for (const StepRecord& step : console.steps())
    steps.push_back({{"step", step.step}, {"loss", step.loss}});
  for (const EpochRecord& epoch : console.epochs())
    epochs.push_back(
        {{"epoch", epoch.epoch},
         {"train_loss", epoch.train_loss},
         {"train_accuracy", epoch.train_accuracy},
         {"test_loss", epoch.test_loss ? Json(*epoch.test_loss) : Json()},
         {"test_accuracy", epoch.test_accuracy ? Json(*epoch.test_accuracy) : Json()},
         {"seconds", epoch.duration.count()}});
  return {{"run", folder.string()},
          {"recipe", job.recipe.to_json()},
          {"plan", to_json(job.plan, job.graph)},
          {"steps", steps},
          {"epochs", epochs},
          {"images_per_s", typical_throughput(console.steps())},
          {"peak_memory_bytes", peak_memory_bytes()},
          {"buffer_bytes", executor.buffer_bytes()},
          {"tasks_per_step", executor.tasks_per_step()},
          {"graph_captures", executor.graph_captures()}};
}

std::int64_t last_step_of(const TrainFlags& flags, const TrainJob& job) {
  if (flags.steps) return *flags.steps;
  return flags.epochs.value_or(1) * steps_per_epoch(job.recipe, *job.data);
}

// What --resume takes from the run; flags that would change the recipe make no sense beside it.
TrainJob resumed_job(CLI::App& app, TrainFlags& flags, const fs::path& folder,
                     std::int64_t& last_step) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool allowed = name == "--resume" || name == "--epochs" || name == "--steps" ||
                         name == "--json" || name == "--help" || name == "--workers" ||
                         name == "--scheduler" || name == "--data" || name == "--test";
    if (option->count() > 0 && !allowed)
      throw InputError(name + " cannot be changed by --resume: the recipe is the run's");
  }
  const Json run = read_json(folder / "run.json");
  TrainJob job = job_of_run(run);
  job.data = open_for(job.recipe, flags.job.data.empty() ? job.recipe.data : flags.job.data,
                      Split::train);
  const Json test = run.value("test", Json());
  if (flags.job.test)
    job.test = *flags.job.test == "none" ? nullptr : open_for(job.recipe, *flags.job.test, Split::test);
  else if (test.is_string())
    job.test = open_for(job.recipe, test, Split::test);
  if (flags.job.workers) job.plan.nodes.front().groups.front().workers = *flags.job.workers;
  if (flags.scheduler) job.plan.scheduler = *flags.scheduler;
  last_step = flags.epochs || flags.steps ? last_step_of(flags, job)
                                          : run.value("last_step", std::int64_t{0});
  return job;
}

}  // namespace

int run_train(std::span<const char* const> arguments) {
  CLI::App app("Trains a network as a task graph on StarPU.", "regatta train");
  TrainFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;

  JobOptions& options = flags.job;
  options.shuffle = flags.shuffle == "on";
  options.plan.reduction = reduction_named(flags.reduction);
  if (flags.input) options.input = Shape::parse(*flags.input);
  if (flags.chunks) options.plan.chunks = parse_sizes("--chunks", *flags.chunks);
  if (flags.shares) options.plan.shares = parse_sizes("--shares", *flags.shares);
  options.plan.devices = devices_named(flags.devices);
  options.plan.gpu_layout = layout_named(flags.layout);
  options.precision = precision_named(flags.precision);
  if (const char* wanted = std::getenv("STARPU_SCHED"); wanted && *wanted)
    options.plan.scheduler = wanted;
  if (flags.scheduler) options.plan.scheduler = *flags.scheduler;

  TrainGoal goal;
  TrainJob job;
  if (flags.resume) {
    job = resumed_job(app, flags, *flags.resume, goal.last_step);
  } else {
    if (options.model.empty()) throw InputError("regatta train needs --model (see regatta models)");
    if (options.data.empty())
      throw InputError("regatta train needs --data, such as mnist or cifar10-synth");
    job = make_job(options);
    goal.last_step = last_step_of(flags, job);
  }

  Executor executor(job.graph, job.plan, job.exec_options(true));
  fs::path folder;
  if (flags.resume) {
    folder = *flags.resume;
    goal.first_step = load_checkpoint(latest_checkpoint(folder), executor);
    if (goal.first_step >= goal.last_step)
      throw InputError("'" + folder.string() + "' has already done " +
                       std::to_string(goal.first_step) + " steps; ask for more with --epochs");
  } else {
    initialise_weights(executor, job.recipe.seed);
    if (flags.init) set_weights(executor, read_safetensors(*flags.init), *flags.init);
    folder = RunFolder::create(flags.out ? fs::path(*flags.out)
                                         : RunFolder::default_name(job.recipe));
  }
  std::optional<std::string> test;
  if (job.test) test = job.test->info().spec;
  write_run_json(folder, job, test, goal.last_step);

  if (flags.save_gradients)
    goal.after_first_step = [&] { write_safetensors(*flags.save_gradients, gradients_of(executor)); };
  RunFolder run(folder, executor);
  Console console(run, steps_per_epoch(job.recipe, *job.data), job.data->info().count, goal);
  std::signal(SIGINT, [](int) { interrupted = true; });
  train(executor, job.recipe, job.data, job.test, goal, console);
  std::signal(SIGINT, SIG_DFL);

  const Json result = result_of(job, executor, console, folder);
  write_json_result(flags.json_file, result);
  if (interrupted)
    std::cerr << "interrupted; go on with: regatta train --resume " << folder.string() << "\n";
  std::printf("%.0f images/s, %zu tasks a step, run folder %s\n",
              result["images_per_s"].get<double>(), executor.tasks_per_step(),
              folder.string().c_str());
  return interrupted ? 130 : 0;
}

}  // namespace regatta::app
