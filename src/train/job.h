// From what a user asks for to what is trained: data, graph, recipe and plan, checked against each
// other.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/mask.h"
#include "exec/executor.h"
#include "models/onnx.h"
#include "plan/make_plan.h"
#include "plan/recipe.h"
#include "profile/profile.h"

namespace regatta {

// So many steps, or epochs.
struct Duration {
  std::int64_t count = 0;
  bool epochs = false;

  static Duration parse(const std::string& flag, const std::string& text);  // "500" or "5e"
};

// A schedule as it is asked for: what concerns another kind than the chosen one is refused.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::optional<Duration> step_size = {}, warmup = {};
  std::optional<double> gamma = {}, final_rate = {}, warmup_start = {};
  bool cycle_momentum = false;
};

struct JobOptions {
  std::string model;             // a name of the zoo or a file, unless `network` is given
  std::optional<Graph> network;  // a user's own
  std::string data;
  std::optional<std::string> test;  // default: the data's own test split, if it has one; "none"
  std::optional<Shape> input;
  std::optional<std::int64_t> classes;
  std::int64_t batch = 64;
  std::int64_t accumulate = 1;
  OptimizerSettings optimizer;
  ScheduleOptions schedule;
  std::optional<std::int64_t> epochs, steps;  // how far the run goes: schedules end there
  double label_smoothing = 0, mixup = 0;
  std::string augment;                   // as parse_augmentation reads it
  std::optional<std::string> normalise;  // as parse_normalisation reads it; default: the data's
  bool strict = false;                   // a sample that cannot be read ends the run
  // Names of the classes that the initial weights were trained on, if known: the data's labels are
  // matched with them by name. With `new_classes` the outputs become the data's classes
  // instead.
  std::vector<std::string> class_names;
  bool new_classes = false;
  std::optional<double> dropout;
  std::int64_t batch_norm_group = 0;  // as in Recipe
  Precision precision = Precision::fp32, wire_precision = Precision::fp32;
  std::uint64_t seed = 1;
  bool shuffle = true;
  std::optional<Mask> mask;    // must fit the network; masked weights are zero from the start
  std::string mask_file;       // names it in errors
  std::optional<int> workers;  // default: STARPU_NCPU, else the CPUs this process may use
  PlanOptions plan;            // see plan_options
};

// The plan's options with what this machine fills in: workers, CPUs and the layout of the CPU
// group.
PlanOptions plan_options(const JobOptions& options);

// Everything a run needs, checked.
struct TrainJob {
  std::shared_ptr<const Dataset> data, test;  // test may be null
  Graph graph;                                // fused
  Recipe recipe;
  Plan plan;
  std::vector<std::string> class_names;    // of the network's outputs; empty if the data tells none
  std::optional<Seconds> predicted_step;   // of the plan, if it was chosen by costs
  std::shared_ptr<const Profile> profile;  // what schedulers reckon with; may be null
  // For a network not of the zoo: its description for run.json, and the weights of its file.
  std::optional<Json> network;
  std::optional<Weights> weights;
  std::optional<Mask> mask;  // its fingerprint is in the recipe; given before the job is run
  // The file whose weights a run starts from, if they are not drawn from the recipe's seed.
  std::optional<std::string> started_from;
  // With several ranks `plan` is this rank's part of the plan of all.
  RankOptions ranks = {};
  std::optional<Plan> plan_of_all = std::nullopt;

  const Plan& whole_plan() const { return plan_of_all ? *plan_of_all : plan; }
  ExecOptions exec_options(bool training) const;
};

// Data, network and recipe; no plan yet.
TrainJob open_job(const JobOptions& options);

// Data, network and recipe, and a plan by a rule of thumb.
TrainJob make_job(const JobOptions& options);

// Gives the mask that the recipe names to a job that lacks it; `from` names it in errors. Throws
// InputError if it is another one, or does not fit the network.
void set_mask(TrainJob& job, Mask mask, const std::string& from);

// The last check of a plan, after all that changes it and before it is run. Throws InputError that
// names all that keeps the job from being carried out here.
void require_runnable(const TrainJob& job);

// The graph that a recipe trains: a model's with the recipe's dropout, label smoothing and groups
// of batch norm, fused.
Graph graph_for(const Recipe& recipe, const Graph& model);

// The same by the model's name; `network` describes one that is not of the zoo. For plan files.
Graph graph_of_recipe(const Recipe& recipe, const std::optional<Json>& network);

// A run's graph, recipe and plan again, from its run.json; its data is not opened.
TrainJob job_of_run(const Json& run);

// A run's network before fusing.
Graph network_of_run(const Json& run);

// Opens `spec` for a network that was trained by `recipe` on classes of these names, if they are
// known; throws InputError if samples or labels do not fit it.
std::shared_ptr<const Dataset> open_for(const Recipe& recipe, const std::string& spec, Split split,
                                        const std::vector<std::string>& class_names,
                                        bool strict = false);

// Throws InputError that says what differs unless `data`, found at `spec`, is what the recipe was
// made for.
void require_same_data(const Recipe& recipe, const std::string& spec, const Dataset& data);

inline constexpr int most_workers = 256;  // StarPU is built for no more

// STARPU_NCPU, else the CPUs this process may use; and the layout their vectors want.
int default_workers();
Layout default_cpu_layout();

}  // namespace regatta
