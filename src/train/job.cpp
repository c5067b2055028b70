#include "train/job.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <variant>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/files.h"
#include "exec/runtime.h"
#include "graph/op.h"
#include "models/models.h"
#include "platform/machine.h"

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
  if (options.workers && (*options.workers < 1 || *options.workers > most_workers))
    throw InputError("--workers " + std::to_string(*options.workers) + ": use 1 to " +
                     std::to_string(most_workers));
}

// A name of the zoo says all of a network; a user's own gets a mark of what it is made of, since
// the recipe must tell two of them apart.
std::string model_in_recipe(const JobOptions& options) {
  if (!options.network) return options.model;
  Json nodes = Json::array();
  for (const Node& node : options.network->nodes()) {
    Json inputs = Json::array(), attributes = Json::object();
    for (const NodeId input : node.inputs) inputs.push_back(input.value);
    for (const auto& [name, value] : node.attributes.values())
      attributes[name] = std::visit([](const auto& held) { return Json(held); }, value);
    nodes.push_back({node.op->name, node.name, inputs, attributes});
  }
  return options.network->name() + "#" + sha256_hex(nodes.dump()).substr(0, 8);
}

// Null if there is nothing to test on: it was declined, or would be the training data again.
std::shared_ptr<const Dataset> open_test(const JobOptions& options, const Recipe& recipe,
                                         const DatasetInfo& data) {
  if (options.test == "none") return nullptr;
  if (!options.test && data.splits_coincide) return nullptr;
  return open_for(recipe, options.test.value_or(options.data), Split::test);
}

}  // namespace

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

std::shared_ptr<const Dataset> open_for(const Recipe& recipe, const std::string& spec,
                                        Split split) {
  auto data = open_dataset(spec, split, recipe.seed);
  require_fit(data->info(), recipe.input, recipe.classes);
  if (data->info().dtype != recipe.sample_dtype)
    throw InputError("data '" + spec + "' is stored as " +
                     (recipe.sample_dtype == Dtype::u8 ? "float32" : "uint8") +
                     ", the training data was not; convert one of them");
  return data;
}

ExecOptions TrainJob::exec_options(bool training) const {
  return {
      {recipe.sample_dtype, recipe.precision, recipe.optimizer}, recipe.normalisation, training,
      recipe.seed};
}

TrainJob make_job(const JobOptions& options) {
  require_sense(options);
  if (!options.network) build_model(options.model);  // a wrong name is told before data is read
  TrainJob job;
  job.data = open_dataset(options.data, Split::train, options.seed);
  const DatasetInfo& info = job.data->info();
  const ModelOptions adapt{options.input.value_or(info.sample),
                           options.classes.value_or(info.classes)};
  job.graph = fuse(options.network ? *options.network : build_model(options.model, adapt));

  Recipe& recipe = job.recipe;
  recipe.model = model_in_recipe(options);
  recipe.input = job.graph.node(job.graph.input()).shape;
  recipe.classes = job.graph.classes();
  recipe.data = options.data;
  recipe.sample_dtype = info.dtype;
  recipe.normalisation = {info.scale, info.mean, info.deviation};
  recipe.batch = options.batch;
  recipe.optimizer = options.optimizer;
  recipe.precision = options.precision;
  recipe.seed = options.seed;
  recipe.shuffle = options.shuffle;
  require_fit(info, recipe.input, recipe.classes);
  if (recipe.batch > info.count)
    throw InputError("--batch " + std::to_string(recipe.batch) + ": data '" + info.spec +
                     "' has only " + std::to_string(info.count) + " samples");
  job.test = open_test(options, recipe, info);

  PlanOptions plan = options.plan;
  plan.workers = options.workers ? *options.workers : default_workers();
  plan.layout = default_cpu_layout();
  job.plan = make_plan(job.graph, recipe, plan);
  require_valid(job.plan, job.graph, recipe.batch);
  return job;
}

TrainJob job_of_run(const Json& run) {
  for (const char* key : {"recipe", "plan"})
    if (!run.contains(key)) throw InputError(std::string("it has no ") + key);
  TrainJob job;
  job.recipe = recipe_from_json(run["recipe"]);
  job.graph = fuse(
      build_model(job.recipe.model, {.input = job.recipe.input, .classes = job.recipe.classes}));
  job.plan = plan_from_json(run["plan"], job.graph);
  if (job.plan.recipe != job.recipe.fingerprint())
    throw InputError("its plan was made for another recipe");
  require_valid(job.plan, job.graph, job.recipe.batch);
  return job;
}

}  // namespace regatta
