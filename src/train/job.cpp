#include "train/job.h"

#include <cstdlib>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "exec/runtime.h"
#include "models/models.h"
#include "platform/machine.h"

namespace regatta {
namespace {

// Sets that come with a test split of their own; files do not.
bool has_test_split(const std::string& spec) {
  return spec.find(':') == std::string::npos || spec.starts_with("synth:");
}

void require_fit(const DatasetInfo& info, const Shape& input, std::int64_t classes) {
  if (info.sample != input)
    throw InputError("data '" + info.spec + "' has samples of " + info.sample.text() +
                     ", the model takes " + input.text() + "; drop --input or choose other data");
  if (info.classes > classes)
    throw InputError("data '" + info.spec + "' has labels up to " +
                     std::to_string(info.classes - 1) + ", the model has " +
                     std::to_string(classes) + " classes; use --classes " +
                     std::to_string(info.classes));
}

// The data set as the command line leaves it: `--test none` is null.
std::shared_ptr<const Dataset> open_test(const JobOptions& options, const Recipe& recipe) {
  if (options.test == "none") return nullptr;
  if (!options.test && !has_test_split(options.data)) return nullptr;
  return open_for(recipe, options.test.value_or(options.data), Split::test);
}

}  // namespace

int default_workers() {
  check_starpu_environment();
  for (const char* name : {"STARPU_NCPU", "STARPU_NCPUS"})
    if (const char* value = std::getenv(name); value && std::atoi(value) > 0)
      return std::atoi(value);
  return available_cpus();
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
  return {{recipe.sample_dtype, recipe.precision}, recipe.normalisation, training};
}

TrainJob make_job(const JobOptions& options) {
  TrainJob job;
  job.data = open_dataset(options.data, Split::train, options.seed);
  const DatasetInfo& info = job.data->info();
  const ModelOptions adapt{options.input.value_or(info.sample),
                           options.classes.value_or(info.classes)};
  job.graph = fuse(options.network ? *options.network : build_model(options.model, adapt));

  Recipe& recipe = job.recipe;
  recipe.model = job.graph.name();
  recipe.input = job.graph.node(job.graph.input()).shape;
  recipe.classes = job.graph.classes();
  recipe.data = options.data;
  recipe.sample_dtype = info.dtype;
  recipe.normalisation = {info.scale, info.mean, info.deviation};
  recipe.batch = options.batch;
  recipe.sgd = options.sgd;
  recipe.precision = options.precision;
  recipe.seed = options.seed;
  recipe.shuffle = options.shuffle;
  require_fit(info, recipe.input, recipe.classes);
  if (recipe.batch > info.count)
    throw InputError("--batch " + std::to_string(recipe.batch) + ": data '" + info.spec +
                     "' has only " + std::to_string(info.count) + " samples");
  job.test = open_test(options, recipe);

  PlanOptions plan = options.plan;
  plan.workers = options.workers ? *options.workers : default_workers();
  plan.layout = default_cpu_layout();
  job.plan = make_plan(job.graph, recipe, plan);
  require_valid(job.plan, job.graph, recipe.batch);
  return job;
}

TrainJob job_of_run(const Json& run) {
  if (!run.contains("recipe") || !run.contains("plan"))
    throw InputError("run.json has no recipe or no plan; was it written by regatta train?");
  TrainJob job;
  job.recipe = recipe_from_json(run["recipe"]);
  job.graph = fuse(
      build_model(job.recipe.model, {.input = job.recipe.input, .classes = job.recipe.classes}));
  job.plan = plan_from_json(run["plan"], job.graph);
  if (job.plan.recipe != job.recipe.fingerprint())
    throw InputError("run.json: the plan was made for another recipe");
  require_valid(job.plan, job.graph, job.recipe.batch);
  return job;
}

}  // namespace regatta
