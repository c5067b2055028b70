#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <iostream>
#include <set>
#include <utility>

#include "app/command.h"
#include "app/cpu_use.h"
#include "app/granularity.h"
#include "app/openmp_environment.h"
#include "app/placement.h"
#include "app/rank_run.h"
#include "app/recipe_flags.h"
#include "app/tracing.h"
#include "app/unequal.h"
#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "data/skips.h"
#include "platform/disturbance.h"
#include "platform/machine.h"
#include "train/calibrate.h"
#include "train/checkpoint.h"
#include "train/memory_check.h"
#include "train/refine.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  JobOptions job;
  RecipeFlags recipe;
  std::optional<std::int64_t> epochs, steps;
  std::string reduction = "slots", shuffle = "on";
  std::string devices = "cpu", layout = "nhwc", precision = "fp32", perf_model = "fitted";
  std::string granularity = "auto";
  bool explain = false;
  std::optional<std::string> init, save_gradients, out, resume, json_file, input, chunks, shares,
      scheduler, checkpoint_every;
  std::optional<int> keep;
  bool no_refine = false;
  TraceFlags trace;
  PlacementFlags placement;
  RankFlags ranks;
};

void declare(CLI::App& app, TrainFlags& flags) {
  JobOptions& job = flags.job;
  app.add_option("--model", job.model,
                 "a name that regatta models lists, such as resnet18, or a network of one's own:\n"
                 "net.json, or net.onnx with its weights")
      ->type_name("NAME|FILE");
  app.add_option("--data", job.data,
                 "mnist, fashion-mnist, digits-synth, cifar10-synth, imagenet-synth,\n"
                 "folder:DIR, shards:DIR, tfrecord:GLOB, cifar10:DIR, cifar100:DIR,\n"
                 "idx:IMAGES,LABELS, npy:X.npy,Y.npy or synth:CxHxW/CLASSES@COUNT")
      ->type_name("SPEC");
  app.add_option("--test", job.test,
                 "data to test on after each epoch, or none (default: the data's own test split,\n"
                 "but nothing if --steps are less than an epoch)")
      ->type_name("SPEC");
  app.add_option("--epochs", flags.epochs, "passes over the data (default 1)")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--steps", flags.steps, "steps instead of epochs")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--batch", job.batch, "images per step")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  declare_recipe(app, flags.recipe);
  app.add_option("--seed", job.seed, "of weights, order and synthetic data")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--shuffle", flags.shuffle, "visit the data in a new order each epoch")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--input", flags.input, "image size, if not the data's")->type_name("CxHxW");
  app.add_option("--augment", job.augment,
                 "random changes to training images, such as crop:4,flip or\n"
                 "resize-crop:224,flip,jitter:0.4")
      ->type_name("HOW");
  app.add_option("--normalise", job.normalise,
                 "MEANS:DEVIATIONS, or none, imagenet, cifar10, ... (default: the data's)")
      ->type_name("HOW");
  app.add_flag("--strict", job.strict, "an image that cannot be read ends the run");
  app.add_option("--classes", job.classes, "classes, if not the data's")
      ->type_name("N")
      ->check(whole_number(2));
  app.add_option("--init", flags.init,
                 "start from these weights; classes are matched by name, if both have names")
      ->type_name("FILE");
  app.add_flag("--new-classes", job.new_classes,
               "the outputs of --init or of net.onnx become the data's classes, whatever they\n"
               "were trained on");
  app.add_option("--granularity", flags.granularity,
                 "auto: segments, chunks, teams and the number of workers are chosen by predicted\n"
                 "times, but for what is given; fixed: a rule of thumb")
      ->type_name("KIND")
      ->capture_default_str();
  app.add_flag("--explain", flags.explain,
               "print the choice of --granularity auto, the runners-up and their predicted times,\n"
               "and train nothing");
  app.add_option("--workers", job.workers,
                 "CPU workers, at most (default: the CPUs this process may use)")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--chunks", flags.chunks, "cut the batch into N chunks, or into sizes such as 3,5")
      ->type_name("N|SIZES");
  app.add_option("--team", job.plan.team,
                 "threads that work on a chunk together; --workers counts all of them")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--devices", flags.devices, "cpu, cuda or cpu,cuda")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--shares", flags.shares,
                 "a chunk for each CPU worker: equal, or speed, which makes up for --slow; or\n"
                 "samples of the batch for each of --devices, such as 8,56. Over several ranks:\n"
                 "equal, speed (as measured at the start, default) or samples of each")
      ->type_name("SIZES");
  app.add_option("--layout", flags.layout, "of images on GPUs: nhwc or nchw")
      ->check(CLI::IsMember({"nhwc", "nchw"}))
      ->capture_default_str();
  app.add_option("--precision", flags.precision, "fp32, or on GPUs tf32 or bf16")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--segments", job.plan.segments,
                 "gather operators: op, block, step or a number of segments")
      ->type_name("HOW");
  app.add_option("--reduction", flags.reduction, "how gradients come together: slots, redux, loop")
      ->type_name("HOW")
      ->capture_default_str();
  app.add_option("--scheduler", flags.scheduler,
                 "regatta, or a scheduler of StarPU's such as eager, lws or dmda\n"
                 "(default: STARPU_SCHED, or regatta)")
      ->type_name("NAME");
  app.add_option(
         "--perf-model", flags.perf_model,
         "what schedulers such as dmda are told of a task's time: fitted (by the profile),\n"
         "or learned by StarPU: history, regression")
      ->type_name("KIND")
      ->capture_default_str();
  app.add_flag("--no-refine", flags.no_refine,
               "leave this machine's profile of costs as it is: a few timed steps refine it");
  app.add_flag("--deterministic", job.plan.deterministic,
               "the same bits for any number of workers and any scheduler");
  app.add_option("--save-gradients", flags.save_gradients, "write the first step's gradients")
      ->type_name("FILE");
  app.add_option("--out", flags.out, "run folder (default: runs/MODEL-DATA-TIME)")
      ->type_name("FOLDER");
  app.add_option("--checkpoint-every", flags.checkpoint_every,
                 "save after so many steps or so much time, such as 500, 30s, 10m, 2h\n"
                 "(always: after each epoch and at the end)")
      ->type_name("N|TIME");
  app.add_option("--keep", flags.keep, "checkpoints that stay, besides the best (default 2)")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  app.add_option("--resume", flags.resume, "go on with this run, to --epochs or --steps")
      ->type_name("FOLDER");
  add_json_flag(app, flags.json_file);
  add_trace_flags(app, flags.trace);
  add_placement_flags(app, flags.placement);
  add_rank_flags(app, flags.ranks);
  app.footer(
      "Example:\n  regatta train --model lenet5 --data mnist --epochs 3 --batch 64 --lr 0.02");
}

std::atomic<int> caught_signal = 0;

// Ctrl-C, a closed terminal, or a scheduler that wants its machine back ends the run after the step
// at work; the second time it ends the program at once.
class StopOnSignals {
 public:
  StopOnSignals() {
    caught_signal = 0;
    for (const int signal : signals)
      if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
    std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error like a full disk
  }
  ~StopOnSignals() {
    for (const int signal : signals) std::signal(signal, SIG_DFL);
  }
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
  static void note(int signal) {
    caught_signal = signal;
    std::signal(signal, SIG_DFL);
  }
};

// Shows progress and gathers what --json reports; the run folder hears everything too.
class Console : public TrainObserver {
 public:
  Console(RunFolder& folder, Tracing& tracing, LoadMeter& meter, Refinement* refinement,
          const TrainJob& job, const TrainGoal& goal)
      : folder_(folder),
        tracing_(tracing),
        meter_(meter),
        refinement_(refinement),
        batch_(job.recipe.samples_per_step()),
        images_(job.data->info().count),
        per_epoch_(steps_per_epoch(job.recipe, *job.data)),
        goal_(goal),
        averaged_(job.recipe.optimizer.ema > 0),
        progress_(std::cerr) {}

  void on_step(const StepRecord& record) override {
    meter_.on_step();
    folder_.on_step(record);
    tracing_.on_step(record);
    if (refinement_) refinement_->on_step(record);
    curve_.add(as_stretch(record));
    last_ = record;
    reported_ = false;
    // Time and images apart: a mean of rates would hardly notice a long step.
    recent_seconds_ = 0.95 * recent_seconds_ + record.duration.count();
    recent_images_ = 0.95 * recent_images_ + static_cast<double>(record.samples);
    progress_.update(state(record));
  }

  void on_test(const Evaluation& tested) override { folder_.on_test(tested); }

  void on_epoch(const EpochRecord& record) override {
    folder_.on_epoch(record);
    tracing_.on_epoch(record);
    epochs_.push_back(record);
    reported_ = true;
    if (last_.step > 0) progress_.finish_epoch(state(last_));
    char text[200];
    int length = std::snprintf(text, sizeof text, "epoch %lld: train loss %.4f, accuracy %.2f%%",
                               static_cast<long long>(record.epoch), record.train_loss,
                               100 * record.train_accuracy);
    if (record.test_accuracy)
      std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length),
                    "; test loss %.4f, accuracy %.2f%%%s", *record.test_loss,
                    100 * *record.test_accuracy, averaged_ ? " (averaged weights)" : "");
    progress_.message(text);
    for (const std::string& note : record.notes) progress_.message(note);
  }

  void on_rest(const TrainState& state) override {
    meter_.on_rest();
    folder_.on_rest(state);
    finished_ = reported_ && state.step == goal_.last_step;
  }
  bool wants_rest(std::int64_t step) override { return folder_.wants_rest(step); }
  bool stop() override { return caught_signal != 0; }
  std::string way_back() override { return folder_.way_back(); }

  // No more steps will come: what is printed next begins a line of its own.
  void leave_line() { progress_.leave_line(); }

  // All steps are done and the last epoch is reported.
  bool finished() const { return finished_; }
  const trace::StepCurve& curve() const { return curve_; }
  const std::vector<EpochRecord>& epochs() const { return epochs_; }

 private:
  ProgressState state(const StepRecord& record) const {
    ProgressState state;
    state.epoch = (record.step - 1) / per_epoch_ + 1;
    state.epochs = (goal_.last_step - 1) / per_epoch_ + 1;
    const std::int64_t before = (state.epoch - 1) * per_epoch_;  // steps of earlier epochs
    state.done = std::min((record.step - before) * batch_, images_);
    // The last epoch may be cut short by --steps.
    state.total = std::min(std::min(goal_.last_step - before, per_epoch_) * batch_, images_);
    const double rate = recent_seconds_ > 0 ? recent_images_ / recent_seconds_ : 0;
    state.images_per_second = rate;
    state.loss = record.loss;
    if (rate > 0)
      state.left = Seconds(static_cast<double>(goal_.last_step - record.step) *
                           static_cast<double>(batch_) / rate);
    return state;
  }

  RunFolder& folder_;
  Tracing& tracing_;
  LoadMeter& meter_;
  Refinement* refinement_;  // null: none
  std::int64_t batch_, images_, per_epoch_;
  const TrainGoal& goal_;
  bool averaged_;
  Progress progress_;
  double recent_seconds_ = 0, recent_images_ = 0;  // the latest twenty steps or so
  bool reported_ = false, finished_ = false;
  trace::StepCurve curve_;
  StepRecord last_;
  std::vector<EpochRecord> epochs_;
};

// Of all epochs, each by the time it took.
double loader_share(const std::vector<EpochRecord>& epochs) {
  double loading = 0, all = 0;
  for (const EpochRecord& epoch : epochs) {
    loading += epoch.loader_share * epoch.duration.count();
    all += epoch.duration.count();
  }
  return all > 0 ? loading / all : 0;
}

Json result_of(const TrainJob& job, const Executor& executor, const Console& console,
               const LoadMeter& meter, const Speed& speed, const fs::path& folder) {
  Json steps = Json::array(), epochs = Json::array();
  for (const trace::StepStretch& point : console.curve().points()) {
    steps.push_back({{"step", point.step}, {"loss", point.loss}});
    if (point.steps > 1)
      steps.back().update(
          {{"steps", point.steps}, {"loss_min", point.loss_min}, {"loss_max", point.loss_max}});
  }
  for (const EpochRecord& epoch : console.epochs())
    epochs.push_back({{"epoch", epoch.epoch},
                      {"train_loss", epoch.train_loss},
                      {"train_accuracy", epoch.train_accuracy},
                      {"test_loss", epoch.test_loss ? Json(*epoch.test_loss) : Json()},
                      {"test_accuracy", epoch.test_accuracy ? Json(*epoch.test_accuracy) : Json()},
                      {"seconds", epoch.duration.count()},
                      {"loader_share", epoch.loader_share}});
  Json result{{"run", folder.string()},
              {"recipe", job.recipe.to_json()},
              {"plan", to_json(job.whole_plan(), job.graph)},
              {"steps", steps},
              {"epochs", epochs},
              {"skipped", to_json(job.data->skipped())},
              {"test_skipped", to_json(job.test ? job.test->skipped() : SkippedSamples{})},
              {"loader_share", loader_share(console.epochs())},
              {"peak_memory_bytes", peak_memory_bytes()},
              {"buffer_bytes", executor.buffer_bytes()},
              {"tasks_per_step", executor.tasks_per_step()},
              {"graph_captures", executor.graph_captures()}};
  result.update(to_json(speed));
  result.update(granularity_fields(job, meter));
  return result;
}

std::int64_t last_step_asked(const TrainFlags& flags, const TrainJob& job) {
  return last_step_of(flags.epochs, flags.steps, steps_per_epoch(job.recipe, *job.data));
}

// On standard error, when all that can be wrong has been checked: how many CPUs the plan uses of
// how many, and why not all.
void tell_cpus(const TrainFlags& flags, const TrainJob& job) {
  const std::string asked = worker_source(flags.job.workers);
  std::cerr << cpu_line(threads_of(job.plan), cpu_limits(), asked.empty() ? "the plan" : asked,
                        removed_openmp_variables())
            << "\n";
}

// `init` holds the weights of --init, or nothing.
TrainJob new_job(const TrainFlags& flags, const TensorFile& init, TrainGoal& goal) {
  JobOptions options = flags.job;
  options.class_names = class_names_of(init);
  options.shuffle = flags.shuffle == "on";
  apply(flags.recipe, options);
  options.epochs = flags.epochs;
  options.steps = flags.steps;
  options.plan.reduction = reduction_named(flags.reduction);
  if (flags.input) options.input = Shape::parse(*flags.input);
  if (flags.chunks) options.plan.chunks = parse_sizes("--chunks", *flags.chunks);
  const int workers = options.workers.value_or(default_workers());
  const bool shared_out = flags.shares && shares_of_workers(*flags.shares);
  if (shared_out && flags.chunks)
    throw InputError("--shares " + *flags.shares + " cuts the batch itself: drop --chunks");
  if (shared_out)
    options.plan.chunks = {std::min<std::int64_t>(workers, options.batch)};
  else if (flags.shares)
    options.plan.shares = samples_of(*flags.shares);
  options.plan.devices = devices_named(flags.devices);
  options.plan.gpu_layout = layout_named(flags.layout);
  options.precision = precision_named(flags.precision);
  if (const char* wanted = std::getenv("STARPU_SCHED"); wanted && *wanted)
    options.plan.scheduler = wanted;
  if (flags.scheduler) options.plan.scheduler = *flags.scheduler;
  options.plan.perf_model = perf_model_named(flags.perf_model);
  if (granularity_named(flags.granularity) == GranularityKind::automatic) {
    const auto steps = [&flags](const TrainJob& job) { return last_step_asked(flags, job); };
    options.costs = flags.explain ? cost_source() : cost_source(steps);
    options.rehearsal = flags.explain ? rehearsal() : rehearsal(steps);
  }
  if (options.model.empty()) throw InputError("train needs --model; regatta models lists them");
  if (options.data.empty())
    throw InputError("train needs --data, such as mnist, digits-synth or npy:X.npy,Y.npy");
  TrainJob job = make_job(options);
  if (shared_out)
    share_out(job, *flags.shares, workers, flags.placement.slow,
              share_trials(job, flags.granularity, last_step_asked(flags, job)));
  else
    slow_down(job.plan, flags.placement.slow);
  if (flags.placement.placement) place(job, *flags.placement.placement);
  goal.last_step = last_step_asked(flags, job);
  return job;
}

// A recipe and plan from a file, or from a run whose schedule is to be repeated.
TrainJob planned_job(const CLI::App& app, const TrainFlags& flags, const TensorFile& init,
                     TrainGoal& goal) {
  const std::string by = flags.placement.plan ? "--plan" : "--replay";
  TrainJob job;
  if (flags.placement.plan) {
    const PlanFile file = read_plan_file(*flags.placement.plan, graph_of_recipe);
    // With a model the flags tell a recipe of their own, which must be the plan's.
    if (!flags.job.model.empty()) {
      TrainFlags asked = flags;
      asked.placement = {};
      asked.granularity = "fixed";
      const std::string differences =
          recipe_differences(new_job(asked, init, goal).recipe, file.recipe);
      if (!differences.empty())
        throw InputError("'" + *flags.placement.plan +
                         "' was made for another recipe: " + differences);
    }
    require_this_machine(file.plan, file.platform_name, flags.placement.platform);
    job = job_of_plan(file);
    // The same data, wherever it lies now.
    if (!flags.job.data.empty()) job.recipe.data = absolute_spec(flags.job.data);
  } else {
    job = job_of_replay(*flags.placement.replay);
  }
  const std::set<std::string> allowed{"--plan",           "--replay",    "--platform",
                                      "--slow",           "--epochs",    "--steps",
                                      "--json",           "--test",      "--checkpoint-every",
                                      "--keep",           "--strict",    "--trace",
                                      "--trace-steps",    "--out",       "--init",
                                      "--save-gradients", "--no-refine", "--new-classes",
                                      "--data",           "--quiet"};
  if (flags.job.model.empty())
    for (const CLI::Option* option : app.get_options())
      if (option->count() > 0 && !allowed.contains(option->get_name()))
        throw InputError(option->get_name() + " cannot be changed by " + by + ": it is the plan's");
  if (const auto names = class_names_of(init); !names.empty()) job.class_names = names;
  if (flags.job.new_classes) job.class_names.clear();
  job.data = open_for(job.recipe, job.recipe.data, Split::train, job.class_names, flags.job.strict);
  require_same_data(job.recipe, job.recipe.data, *job.data);
  if (job.class_names.empty()) job.class_names = job.data->info().class_names;
  const std::string test =
      flags.job.test.value_or(job.data->info().splits_coincide ? "none" : job.recipe.data);
  if (test != "none")
    job.test = open_for(job.recipe, test, Split::test, job.class_names, flags.job.strict);
  slow_down(job.plan, flags.placement.slow);
  goal.last_step = last_step_asked(flags, job);
  return job;
}

// What the flags say goes before what the run was started with.
CheckpointPolicy checkpoint_policy(const TrainFlags& flags, CheckpointPolicy policy) {
  if (flags.checkpoint_every)
    policy = CheckpointPolicy::parse(*flags.checkpoint_every, policy.keep);
  policy.keep = flags.keep.value_or(policy.keep);
  return policy;
}

// What --resume takes from the run; flags that would change the recipe make no sense beside it.
TrainJob resumed_job(const CLI::App& app, const TrainFlags& flags, TrainGoal& goal,
                     CheckpointPolicy& policy) {
  const std::set<std::string> allowed{"--resume",      "--epochs",    "--steps",
                                      "--json",        "--workers",   "--scheduler",
                                      "--data",        "--test",      "--checkpoint-every",
                                      "--keep",        "--strict",    "--trace",
                                      "--trace-steps", "--no-refine", "--quiet",
                                      "--update",      "--shares"};
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && !allowed.contains(option->get_name()))
      throw InputError(option->get_name() + " cannot be changed by --resume: it is the run's");
  RunRecord run = read_run_json(*flags.resume);
  policy = run.checkpoints;
  TrainJob& job = run.job;
  std::string test = flags.job.test.value_or(run.test.value_or("none"));
  const std::string spec = flags.job.data.empty() ? job.recipe.data : flags.job.data;
  try {
    job.data = open_for(job.recipe, spec, Split::train, job.class_names, flags.job.strict);
  } catch (const InputError& error) {
    if (!flags.job.data.empty()) throw;
    throw InputError(std::string(error.what()) + "; if the data moved, --data says where to");
  }
  require_same_data(job.recipe, spec, *job.data);
  // The data moved, and its test split with it. A plan belongs to its recipe by fingerprint, which
  // only recipes of old change with the path.
  if (!flags.job.test && test == job.recipe.data) test = spec;
  job.recipe.data = absolute_spec(spec);
  job.plan.recipe = job.recipe.fingerprint();
  if (test != "none")
    job.test = open_for(job.recipe, test, Split::test, job.class_names, flags.job.strict);
  if (flags.job.workers)
    for (DeviceGroup& group : job.plan.nodes.front().groups)
      if (group.kind == DeviceKind::cpu) {
        group.workers = std::max(1, *flags.job.workers / group.team);
        if (!group.slow.empty()) group.slow.resize(static_cast<std::size_t>(group.workers), 1);
      }
  if (flags.scheduler) job.plan.scheduler = *flags.scheduler;
  // A fixed order belongs to the task list made for the plan's own number of CPUs: that stays.
  if (job.plan.order.empty()) job.plan.cpus = available_cpus();
  goal.last_step = flags.epochs || flags.steps ? last_step_asked(flags, job) : run.last_step;
  return std::move(job);
}

void start_afresh(const TrainFlags& flags, const TensorFile& init, const TrainJob& job,
                  Executor& executor) {
  initialise_weights(executor, job.recipe.seed);
  if (job.weights) set_weights(executor, *job.weights);
  if (flags.init) set_weights(executor, init, *flags.init);
}

// Where the run stood when it was left. What the user should know of it is said if `speaks`.
TrainState go_on(const TrainFlags& flags, const TrainJob& job, const TrainGoal& goal,
                 Executor& executor, bool speaks = true) {
  const fs::path folder = *flags.resume;
  const auto say = [&](const std::string& text) {
    if (speaks) std::cerr << text << "\n";
  };
  if (!has_checkpoints(folder)) {
    say("'" + folder.string() + "' has no checkpoint yet: starting from its first step");
    start_afresh(flags, {}, job, executor);
    return {};
  }
  std::vector<std::string> damaged;
  const fs::path checkpoint = latest_checkpoint(folder, &damaged);
  for (const std::string& text : damaged) say(text + "; going on from " + checkpoint.string());
  const TrainState state = load_checkpoint(checkpoint, executor);
  const bool epoch_unreported =
      state.step == goal.last_step && state.seen == job.data->info().count;
  if (state.step >= goal.last_step && !epoch_unreported)
    throw InputError("'" + folder.string() + "' has already done " + std::to_string(state.step) +
                     " of " + std::to_string(goal.last_step) +
                     " steps; ask for more with --epochs or --steps");
  return state;
}

// Less than an epoch is trained to try something: then a whole test is only made for those who ask
// for one, now or when the run began.
bool tests(const TrainFlags& flags, const TrainJob& job, const TrainGoal& goal) {
  if (!job.test) return false;
  const bool asked =
      flags.job.test || absolute_spec(job.test->info().spec) != absolute_spec(job.recipe.data);
  return asked || goal.last_step >= steps_per_epoch(job.recipe, *job.data);
}

// Of several ranks: how the batch is shared out is not this process's own affair, and plans are cut
// by a rule of thumb.
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

// What the ranks after the first do: they train, and leave all else to that one.
int follow_first_rank(Ranks& ranks, const TrainFlags& flags, const TensorFile& init,
                      const TrainJob& job, TrainGoal goal, Executor& executor) {
  on_all_ranks(&ranks, [&] {
    if (flags.resume)
      goal.from = go_on(flags, job, goal, executor, /*speaks=*/false);
    else
      start_afresh(flags, init, job, executor);
  });
  ranks.require_same("gone on from step", std::to_string(goal.from.step));
  if (flags.save_gradients) goal.after_first_step = [] {};  // all collect the first step alike
  QuietObserver observer([] { return caught_signal != 0; });
  train_with_others(
      &ranks, executor,
      [&] {
        const StopOnSignals watch;
        train(executor, job.recipe, job.data, tests(flags, job, goal) ? job.test : nullptr, goal,
              observer);
      },
      [&] {
        return flags.resume ? "; go on with: regatta train --resume " + *flags.resume
                            : std::string();
      });
  return 0;
}

}  // namespace

int run_train(std::span<const char* const> arguments) {
  CLI::App app("Trains a network as a task graph on StarPU.", "regatta train");
  TrainFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;

  const std::unique_ptr<Ranks> ranks = Ranks::join();
  TrainGoal goal;
  CheckpointPolicy policy;
  TensorFile init;
  TrainJob job;
  on_all_ranks(ranks.get(), [&] {
    if (flags.placement.plan && flags.placement.replay)
      throw InputError("--plan and --replay exclude each other; give one");
    if (flags.init && !flags.resume) init = read_safetensors(*flags.init);
    job = flags.resume                  ? resumed_job(app, flags, goal, policy)
          : flags.placement.from_file() ? planned_job(app, flags, init, goal)
          : ranks                       ? new_job(flags_of_rank(flags), init, goal)
                                        : new_job(flags, init, goal);
  });
  std::string exchange;  // what is predicted of it
  if (ranks)
    exchange = share_among(*ranks, job, rank_request(flags));
  else if (flags.resume && job.plan.nodes.size() > 1)
    gather_on_one(job, flags.job.workers.value_or(default_workers()));
  on_all_ranks(ranks.get(), [&] { require_runnable(job); });
  if (flags.explain && ranks && !ranks->first()) return 0;
  if (flags.explain) {
    std::cout << (job.choice ? explain(*job.choice)
                             : "nothing was chosen by predicted times: see --granularity\n");
    const Json predicted = job.choice ? Json(job.choice->best().expected_seconds()) : Json();
    write_json_result(flags.json_file, {{"recipe", job.recipe.to_json()},
                                        {"plan", to_json(job.plan, job.graph)},
                                        {"predicted_step_s", predicted}});
    return 0;
  }
  policy = checkpoint_policy(flags, policy);
  on_all_ranks(ranks.get(), [&] { require_memory(job, job.plan); });
  Executor executor(job.graph, job.plan, job.exec_options(true));
  if (ranks) goal.rest_every = policy.steps;
  if (ranks && !ranks->first()) return follow_first_rank(*ranks, flags, init, job, goal, executor);
  std::optional<NewRunFolder> fresh;
  std::optional<RunLock> lock;
  fs::path folder;
  on_all_ranks(ranks.get(), [&] {
    if (flags.resume) {
      lock.emplace(*flags.resume);
      goal.from = go_on(flags, job, goal, executor);
    } else {
      start_afresh(flags, init, job, executor);
      fresh.emplace(flags.out ? fs::path(*flags.out) : NewRunFolder::default_name(job.recipe));
      lock.emplace(fresh->path());
    }
    folder = fresh ? fresh->path() : fs::path(*flags.resume);
    // Only now: both files may be wanted inside the new folder.
    if (flags.json_file) require_writable(*flags.json_file);
    if (flags.save_gradients) {
      require_writable(*flags.save_gradients);
      goal.after_first_step = [&] {
        write_safetensors(*flags.save_gradients, gradients_of(executor));
      };
    }
    // No one but the first checkpoint knows weights that came from outside.
    if (flags.init || job.weights)
      save_checkpoint(folder, executor, goal.from, policy.keep, std::nullopt, false,
                      job.class_names);
    write_run_json(folder, job, goal.last_step, policy);
  });
  if (ranks) ranks->require_same("gone on from step", std::to_string(goal.from.step));
  RunFolder run(folder, executor, goal.from, policy, job.class_names);
  Tracing tracing(flags.trace, folder, executor, job, goal.from.step, goal.last_step);
  if (fresh) fresh->keep();

  if (ranks)
    std::cerr << rank_line(job.whole_plan()) << exchange << "\n";
  else
    tell_cpus(flags, job);
  LoadMeter meter(executor);
  std::optional<Refinement> refinement;
  // A trace has times of its own, and says which steps and how deep. What takes long because it was
  // made to says nothing of the machine.
  const bool slowed = std::ranges::any_of(slowness_of(job.plan), [](double f) { return f > 1; });
  if (!flags.no_refine && !slowed && !flags.trace.trace && !flags.trace.steps && !ranks)
    refinement.emplace(executor, job.recipe);
  Console console(run, tracing, meter, refinement ? &*refinement : nullptr, job, goal);
  Speed speed;
  train_with_others(
      ranks.get(), executor,
      [&] {
        const StopOnSignals watch;
        speed = train(executor, job.recipe, job.data, tests(flags, job, goal) ? job.test : nullptr,
                      goal, console);
      },
      [&] { return run.way_back(); });
  console.leave_line();
  const std::string traced = tracing.finish();
  if (refinement && caught_signal == 0)
    if (const std::string trouble = refinement->store(profile_store()); !trouble.empty())
      std::cerr << trouble << "\n";
  const Json result = result_of(job, executor, console, meter, speed, folder);
  write_json_result(flags.json_file, result);
  write_speed(folder, speed);
  const std::size_t tasks = executor.tasks_per_step();
  std::printf(
      "%.0f images/s, %.1f%% of the workers' time for loading, %zu task%s a step, run folder %s\n",
      speed.images_per_s, 100 * result["loader_share"].get<double>(), tasks, tasks == 1 ? "" : "s",
      folder.string().c_str());
  if (!traced.empty()) std::printf("%s\n", traced.c_str());
  if (const std::string text = disturbed_text(speed.taken_by_others); !text.empty())
    std::printf("%s\n", text.c_str());
  const bool interrupted = caught_signal != 0 && !console.finished();
  if (interrupted)
    std::cerr << "interrupted and saved; go on with: regatta train --resume " << folder.string()
              << "\n";
  leave_report(folder);
  return interrupted ? 128 + caught_signal : 0;
}

}  // namespace regatta::app
