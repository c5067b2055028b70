#include "train/job.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "backends/cpu/cpu_backend.h"
#include "base/class_names.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "data/relabel.h"
#include "data/statistics.h"
#include "exec/runtime.h"
#include "graph/op.h"
#include "models/load.h"
#include "models/models.h"
#include "models/network_json.h"
#include "plan/rank_plan.h"
#include "platform/machine.h"
#include "train/loop.h"
#include "train/masking.h"
#include "train/memory_check.h"

namespace regatta {
namespace {

void require_fit(const DatasetInfo& info, const Shape& input, std::int64_t classes) {
  if (info.sample != input)
    throw InputError("data '" + info.spec + "' has samples of " + info.sample.text() +
                     ", the model takes " + input.text() +
                     "; choose other data or another --input");
  if (info.classes > classes)
    throw InputError("data '" + info.spec + "' has labels up to " +
                     std::to_string(info.classes - 1) + ", the model has " +
                     std::to_string(classes) + " classes; use --classes " +
                     std::to_string(info.classes));
}

std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string shown(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// The size in which made-up images suit a model of the zoo: the model's own, if it was made for as
// many classes and channels or does not take the data's.
Shape size_for(const std::string& model, const DatasetInfo& data) {
  const Graph made = build_model(model);
  const Shape& own = made.node(made.input()).shape;
  if (made.classes() == data.classes && own.channels() == data.sample.channels()) return own;
  const bool fits =
      why_not([&] { build_model(model, {.input = data.sample, .classes = data.classes}); }).empty();
  return fits ? data.sample : own;
}

void require_recipe_sense(const JobOptions& options) {
  const OptimizerSettings& optimizer = options.optimizer;
  const auto check = [](const char* flag, double value, bool holds, const char* way_out) {
    if (!holds) throw InputError(std::string(flag) + " " + shown(value) + ": " + way_out);
  };
  const auto part = [&](const char* flag, double value) {
    check(flag, value, value >= 0 && value < 1, "use a number from 0 to below 1");
  };
  const auto amount = [&](const char* flag, double value) {
    check(flag, value, value >= 0 && std::isfinite(value), "use a number of 0 or more");
  };
  const auto above_0 = [&](const char* flag, double value) {
    check(flag, value, value > 0, "use a number above 0");
  };
  const auto is = [&](std::initializer_list<OptimizerKind> kinds) {
    return std::ranges::find(kinds, optimizer.kind) != kinds.end();
  };
  using enum OptimizerKind;
  part("--momentum", optimizer.momentum);
  part("--beta1", optimizer.beta1);
  part("--beta2", optimizer.beta2);
  part("--alpha", optimizer.alpha);
  part("--ema", optimizer.ema);
  part("--label-smoothing", options.label_smoothing);
  part("--dropout", options.dropout.value_or(0));
  amount("--clip-norm", optimizer.clip_norm);
  amount("--clip-value", optimizer.clip_value);
  amount("--mixup", options.mixup);
  if (optimizer.clip_norm > 0 && optimizer.clip_value > 0)
    throw InputError("--clip-norm and --clip-value exclude each other; give one");
  check("--momentum", optimizer.momentum, optimizer.kind != nesterov || optimizer.momentum > 0,
        "--optimizer nesterov needs a momentum above 0");
  // Epsilon keeps the update of a parameter whose gradients are all 0 from dividing by 0.
  if (is({adam, adamw, rmsprop, lars})) above_0("--epsilon", optimizer.epsilon);
  if (is({lars})) above_0("--trust", optimizer.trust);
  if (is({sgd, nesterov, adamw}))
    check("--weight-decay", optimizer.weight_decay,
          optimizer.weight_decay * optimizer.learning_rate < 1,
          "times the learning rate it is 1 or more, so that a step would turn weights around");
  if (options.accumulate < 1)
    throw InputError("--accumulate " + std::to_string(options.accumulate) + ": use 1 or more");
}

void require_sense(const JobOptions& options) {
  if (options.batch < 1)
    throw InputError("--batch " + std::to_string(options.batch) + ": use 1 or more");
  // The update computes in float.
  constexpr double largest = std::numeric_limits<float>::max();
  const auto check = [](const char* flag, double value) {
    if (value >= 0 && value <= largest) return;
    std::ostringstream text;
    text << flag << ' ' << value << ": use a number of 0 or more that a float can hold";
    throw InputError(text.str());
  };
  for (const OptimizerNumber& number : optimizer_numbers())
    if (number.concerns(options.optimizer.kind))
      check(number.flag.data(), options.optimizer.*number.value);
  require_recipe_sense(options);
  if (options.workers && (*options.workers < 1 || *options.workers > most_workers))
    throw InputError("--workers " + std::to_string(*options.workers) + ": use 1 to " +
                     std::to_string(most_workers));
}

// A name of the zoo says all of a network; a user's own gets a mark of what it is made of, since
// the recipe must tell two of them apart.
std::string marked_name(const Json& network) {
  return network.at("name").get<std::string>() + "#" + sha256_hex(network.dump()).substr(0, 8);
}

// Resolves epochs into steps; refuses what does not concern the kind.
Schedule schedule_for(const JobOptions& options, std::int64_t per_epoch, std::int64_t last_step) {
  const ScheduleOptions& asked = options.schedule;
  const auto only = [&](bool given, const char* flag, std::initializer_list<ScheduleKind> kinds) {
    if (given && std::ranges::find(kinds, asked.kind) == kinds.end())
      throw InputError(std::string(flag) + " does not concern --schedule " +
                       std::string(schedule_name(asked.kind)) +
                       ": drop it, or choose another schedule");
  };
  using enum ScheduleKind;
  only(asked.step_size.has_value(), "--step-size", {step});
  only(asked.gamma.has_value(), "--gamma", {step});
  only(asked.final_rate.has_value(), "--final-lr", {cosine, one_cycle});
  only(asked.cycle_momentum, "--cycle-momentum", {one_cycle});
  only(asked.warmup.has_value(), "--warmup", {constant, step, cosine});
  if (asked.warmup_start && !asked.warmup) throw InputError("--warmup-start needs --warmup");
  if (asked.kind == step && !asked.step_size)
    throw InputError("--schedule step needs --step-size, such as 30e for 30 epochs");
  const auto steps_of = [&](const char* flag, const Duration& duration) {
    std::int64_t steps = 0;
    if (__builtin_mul_overflow(duration.count, duration.epochs ? per_epoch : 1, &steps))
      throw InputError(std::string(flag) + ": that is more steps than can be counted");
    return steps;
  };

  Schedule schedule;
  schedule.kind = asked.kind;
  if (asked.kind == cosine || asked.kind == one_cycle) schedule.steps = last_step;
  if (asked.step_size) schedule.step_size = steps_of("--step-size", *asked.step_size);
  if (asked.kind == step && schedule.step_size < 1)
    throw InputError("--step-size 0: use 1 step or more");
  schedule.gamma = asked.gamma.value_or(schedule.gamma);
  schedule.final_rate = asked.final_rate;
  if (asked.warmup) schedule.warmup = steps_of("--warmup", *asked.warmup);
  schedule.warmup_start = asked.warmup_start.value_or(schedule.warmup_start);
  schedule.cycle_momentum = asked.cycle_momentum;
  for (const auto& [flag, value] : {std::pair{"--gamma", schedule.gamma},
                                    std::pair{"--final-lr", schedule.final_rate.value_or(0)},
                                    std::pair{"--warmup-start", schedule.warmup_start}})
    if (!(value >= 0 && std::isfinite(value)))
      throw InputError(std::string(flag) + " " + shown(value) + ": use a number of 0 or more");
  if (schedule.warmup_start > 1)
    throw InputError("--warmup-start " + shown(schedule.warmup_start) +
                     ": use a part of the learning rate, from 0 to 1");
  if (schedule.kind == cosine && schedule.warmup >= last_step)
    throw InputError("--warmup of " + std::to_string(schedule.warmup) + " steps leaves none of " +
                     std::to_string(last_step) + " for --schedule cosine");
  if (schedule.cycle_momentum && options.optimizer.kind == OptimizerKind::rmsprop &&
      options.optimizer.momentum == 0)
    throw InputError("--cycle-momentum needs a --momentum above 0 with --optimizer rmsprop");
  return schedule;
}

// Null if there is nothing to test on: it was declined, or would be the training data again.
std::shared_ptr<const Dataset> open_test(const JobOptions& options, const TrainJob& job) {
  if (options.test == "none") return nullptr;
  if (!options.test && job.data->info().splits_coincide) return nullptr;
  return open_for(job.recipe, options.test.value_or(options.data), Split::test, job.class_names,
                  options.strict);
}

}  // namespace

Duration Duration::parse(const std::string& flag, const std::string& text) {
  Duration duration;
  duration.epochs = text.ends_with('e');
  const char* end = text.data() + text.size() - (duration.epochs ? 1 : 0);
  const auto [stop, code] = std::from_chars(text.data(), end, duration.count);
  if (code != std::errc{} || stop != end || duration.count < 0)
    throw InputError(flag + " " + text + ": use steps, such as 500, or epochs, such as 5e");
  return duration;
}

int default_workers() {
  check_starpu_environment();
  for (const char* name : {"STARPU_NCPU", "STARPU_NCPUS"}) {
    const char* value = std::getenv(name);
    const int workers = value ? std::atoi(value) : 0;
    if (workers > most_workers)
      throw InputError(std::string(name) + "=" + value + ": use at most " +
                       std::to_string(most_workers));
    if (workers > 0) return workers;
  }
  return std::min(available_cpus(), most_workers);
}

Layout default_cpu_layout() { return cpu::preferred_layout(); }

std::shared_ptr<const Dataset> open_for(const Recipe& recipe, const std::string& spec, Split split,
                                        const std::vector<std::string>& class_names, bool strict) {
  DatasetOptions options{
      .split = split, .seed = recipe.seed, .input = recipe.input, .strict = strict};
  if (split == Split::train) options.augmentation = parse_augmentation(recipe.augment);
  require_memory_of_data(spec, split);
  auto data = labelled_as(open_dataset(spec, options), class_names);
  require_fit(data->info(), recipe.input, recipe.classes);
  if (data->info().dtype != recipe.sample_dtype)
    throw InputError("data '" + spec + "' is stored as " +
                     (recipe.sample_dtype == Dtype::u8 ? "float32" : "uint8") +
                     ", the training data was not; convert one of them");
  return data;
}

void require_same_data(const Recipe& recipe, const std::string& spec, const Dataset& data) {
  const Json found = data.identity();
  const Json& wanted = recipe.data_identity;
  std::string differences;
  for (const auto& [key, value] : wanted.items()) {
    if (found.contains(key) && found[key] == value) continue;
    differences += differences.empty() ? "" : ", ";
    if (!found.contains(key)) {
      differences = "it is of another kind than " + recipe.data;
      break;
    }
    const bool readable = key == "samples" || key == "sample size" || key == "spec";
    differences +=
        readable ? key + " " + shown(found[key]) + " instead of " + shown(value) : "other " + key;
  }
  if (!differences.empty())
    throw InputError("data '" + spec + "' is not what the recipe was made for: " + differences +
                     "; give that data with --data, or start a new run from the weights with "
                     "--init");
}

ExecOptions TrainJob::exec_options(bool training) const {
  return {numbers_of(recipe),
          recipe.normalisation,
          training,
          recipe.seed,
          profile,
          recipe.data,
          mask ? parameter_masks(*mask, graph) : ParameterMasks{},
          {},
          ranks};
}

void set_mask(TrainJob& job, Mask mask, const std::string& from) {
  if (job.recipe.mask.empty())
    throw InputError("mask '" + from + "': the recipe has no mask; drop it, or start a new run");
  require_fit(mask, job.graph, from);
  if (mask.fingerprint() != job.recipe.mask)
    throw InputError("mask '" + from + "' is " + mask.fingerprint() + ", the recipe's is " +
                     job.recipe.mask);
  job.mask = std::move(mask);
}

TrainJob open_job(const JobOptions& options) {
  require_sense(options);
  TrainJob job;
  std::optional<Graph> own = options.network;
  // What is wrong with a name or a file is told before data is read.
  if (!own && is_model_file(options.model)) {
    LoadedModel file =
        read_model_file(options.model, {.input = options.input, .classes = options.classes});
    own = std::move(file.graph);
    job.weights = std::move(file.weights);
    job.class_names = std::move(file.class_names);
  } else if (!own) {
    build_model(options.model);
  }
  const Augmentation augmentation = parse_augmentation(options.augment);
  DatasetOptions data_options{.seed = options.seed,
                              .input = options.input,
                              .augmentation = augmentation,
                              .strict = options.strict};
  if (own) data_options.input = own->node(own->input()).shape;
  if (!options.class_names.empty()) job.class_names = options.class_names;
  if (options.new_classes) job.class_names.clear();
  require_memory_of_data(options.data, Split::train);
  job.data = labelled_as(open_dataset(options.data, data_options), job.class_names);
  if (job.data->info().any_size && !data_options.input) {
    // With a resized crop, the augmentation sets the image size.
    data_options.input = augmentation.resized_crop ? job.data->info().sample
                                                   : size_for(options.model, job.data->info());
    job.data = labelled_as(open_dataset(options.data, data_options), job.class_names);
  }
  const DatasetInfo& info = job.data->info();
  if (job.class_names.empty()) job.class_names = info.class_names;
  const ModelOptions adapt{options.input.value_or(info.sample),
                           options.classes.value_or(info.classes)};
  const Graph network = own ? *own : build_model(options.model, adapt);
  if (own) job.network = json_of(network);
  Recipe& recipe = job.recipe;
  recipe.label_smoothing = options.label_smoothing;
  recipe.dropout = options.dropout;
  recipe.batch_norm_group = options.batch_norm_group;
  job.graph = graph_for(recipe, network);

  recipe.model = job.network ? marked_name(*job.network) : options.model;
  recipe.input = job.graph.node(job.graph.input()).shape;
  recipe.classes = job.graph.classes();
  recipe.data = absolute_spec(options.data);
  recipe.data_identity = job.data->identity();
  recipe.sample_dtype = info.dtype;
  recipe.normalisation = {info.scale, info.mean, info.deviation};
  if (options.normalise)
    recipe.normalisation =
        parse_normalisation(*options.normalise, info.sample.channels(), info.scale);
  if (augmentation.any()) recipe.augment = augmentation_text(augmentation);
  recipe.batch = options.batch;
  recipe.accumulate = options.accumulate;
  recipe.optimizer = options.optimizer;
  recipe.mixup = options.mixup;
  recipe.precision = options.precision;
  recipe.wire_precision = options.wire_precision;
  // A deterministic plan is refused before time is spent on making one.
  Plan asked;
  asked.deterministic = options.plan.deterministic;
  require_no_fault(wire_hindrances(asked, recipe));
  recipe.seed = options.seed;
  recipe.shuffle = options.shuffle;
  if (options.mask) {
    recipe.mask = options.mask->fingerprint();
    set_mask(job, *options.mask, options.mask_file);
  }
  require_fit(info, recipe.input, recipe.classes);
  if (recipe.batch > info.count)
    throw InputError("--batch " + std::to_string(recipe.batch) + ": data '" + info.spec +
                     "' has only " + std::to_string(info.count) + " samples");
  require_groups(recipe, job.graph, info.count);
  const std::int64_t per_epoch = steps_per_epoch(recipe, *job.data);
  recipe.schedule =
      schedule_for(options, per_epoch, last_step_of(options.epochs, options.steps, per_epoch));
  job.test = open_test(options, job);
  return job;
}

PlanOptions plan_options(const JobOptions& options) {
  PlanOptions plan = options.plan;
  plan.workers = options.workers ? *options.workers : default_workers();
  plan.cpus = available_cpus();
  plan.layout = default_cpu_layout();
  return plan;
}

TrainJob make_job(const JobOptions& options) {
  TrainJob job = open_job(options);
  job.plan = make_plan(job.graph, job.recipe, plan_options(options));
  require_runnable(job);
  return job;
}

void require_runnable(const TrainJob& job) {
  std::vector<std::string> found = faults(job.whole_plan(), job.graph, job.recipe.batch);
  std::ranges::move(hindrances(job.plan), std::back_inserter(found));
  std::ranges::move(wire_hindrances(job.whole_plan(), job.recipe), std::back_inserter(found));
  const bool on_cpu = std::ranges::any_of(
      groups_of(job.plan), [](const DeviceGroup* group) { return group->kind == DeviceKind::cpu; });
  if (const std::string why = on_cpu ? cpu::hindrance(job.recipe.precision) : ""; !why.empty())
    found.push_back(why);
  if (job.plan.placement == Placement::fixed && job.recipe.accumulate > 1)
    found.emplace_back("--placement static is for steps of one batch: drop --accumulate");
  if (!job.recipe.mask.empty() && !job.mask)
    found.emplace_back("the recipe has a mask of weights: give it with --mask FILE");
  require_no_fault(found);
}

Graph graph_for(const Recipe& recipe, const Graph& model) {
  GraphBuilder builder(model.name());
  bool drops = false;
  for (const Node& node : model.nodes()) {
    Attributes attributes = node.attributes;
    if (recipe.dropout && node.op->name == "dropout") {
      attributes.set("probability", *recipe.dropout);
      drops = true;
    }
    if (recipe.label_smoothing > 0 && node.id == model.loss())
      attributes.set("smoothing", recipe.label_smoothing);
    if (recipe.batch_norm_group > 0 && node.op->meets)
      attributes.set("group", recipe.batch_norm_group);
    builder.add(*node.op, node.name, node.inputs, std::move(attributes));
  }
  if (recipe.dropout && !drops)
    throw InputError("--dropout: model '" + model.name() + "' has no dropout layer");
  return fuse(std::move(builder).finish());
}

Graph network_of_run(const Json& run) {
  const Recipe recipe = recipe_from_json(run.at("recipe"));
  if (!run.contains("network"))
    return build_model(recipe.model, {.input = recipe.input, .classes = recipe.classes});
  if (marked_name(run["network"]) != recipe.model)
    throw InputError("its network is not that of its recipe");
  return graph_of_json(run["network"]);
}

Graph graph_of_recipe(const Recipe& recipe, const std::optional<Json>& network) {
  Json run{{"recipe", recipe.to_json()}};
  if (network) run["network"] = *network;
  return graph_for(recipe, network_of_run(run));
}

TrainJob job_of_run(const Json& run) {
  for (const char* key : {"recipe", "plan"})
    if (!run.contains(key)) throw InputError(std::string("it has no ") + key);
  TrainJob job;
  job.recipe = recipe_from_json(run["recipe"]);
  job.graph = graph_for(job.recipe, network_of_run(run));
  if (run.contains("network")) job.network = run["network"];
  if (const auto found = run.find(class_names_key); found != run.end())
    job.class_names = class_names_from(found->dump());
  job.plan = plan_from_json(run["plan"], job.graph);
  if (job.plan.recipe != job.recipe.fingerprint())
    throw InputError("its plan was made for another recipe");
  require_valid(job.plan, job.graph, job.recipe.batch);
  return job;
}

}  // namespace regatta
