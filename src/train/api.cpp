// The public library: a thin front for the rooms that do the work.
#include "data/fetch.h"
#include "ops/builder.h"
#include "regatta/regatta.h"
#include "train/checkpoint.h"
#include "train/epoch_history.h"
#include "train/job.h"
#include "train/loop.h"
#include "train/memory_check.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta {

struct Network::Impl {
  NetBuilder builder;
  NodeId last{};

  // What only this network's layers pass.
  NodeId checked(const Layer& layer) const {
    if (layer.network_ != this) throw InputError("a layer was fed to another network than its own");
    return NodeId{layer.number_};
  }
  Layer added(NodeId id) {
    last = id;
    return Layer(this, id.value);
  }
  Graph finished() const { return NetBuilder(builder).finish(last); }
};

Network::Network(std::string name, const ImageSize& input)
    : impl_(new Impl{NetBuilder(std::move(name), {input.channels, input.height, input.width})}) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

Layer Network::input() const { return Layer(impl_.get(), impl_->builder.input().value); }

Layer Network::conv(std::string name, Layer from, const ConvSettings& settings) {
  return impl_->added(impl_->builder.conv(std::move(name), impl_->checked(from), settings));
}
Layer Network::dense(std::string name, Layer from, std::int64_t features) {
  return impl_->added(impl_->builder.dense(std::move(name), impl_->checked(from), features));
}
Layer Network::batch_norm(std::string name, Layer from, const BatchNormSettings& settings) {
  return impl_->added(impl_->builder.batch_norm(std::move(name), impl_->checked(from), settings));
}
Layer Network::layer_norm(std::string name, Layer from, double epsilon) {
  return impl_->added(impl_->builder.layer_norm(std::move(name), impl_->checked(from), epsilon));
}
Layer Network::relu(Layer from) { return impl_->added(impl_->builder.relu(impl_->checked(from))); }
Layer Network::relu6(Layer from) {
  return impl_->added(impl_->builder.relu6(impl_->checked(from)));
}
Layer Network::sigmoid(Layer from) {
  return impl_->added(impl_->builder.sigmoid(impl_->checked(from)));
}
Layer Network::tanh(Layer from) { return impl_->added(impl_->builder.tanh(impl_->checked(from))); }
Layer Network::global_average_pool(Layer from) {
  return impl_->added(impl_->builder.global_average_pool(impl_->checked(from)));
}
Layer Network::flatten(Layer from) {
  return impl_->added(impl_->builder.flatten(impl_->checked(from)));
}
Layer Network::leaky_relu(Layer from, double slope) {
  return impl_->added(impl_->builder.leaky_relu(impl_->checked(from), slope));
}
Layer Network::gelu(Layer from, bool by_tanh) {
  return impl_->added(impl_->builder.gelu(impl_->checked(from), by_tanh));
}
Layer Network::max_pool(Layer from, const PoolSettings& settings) {
  return impl_->added(impl_->builder.max_pool(impl_->checked(from), settings));
}
Layer Network::average_pool(Layer from, const PoolSettings& settings) {
  return impl_->added(impl_->builder.average_pool(impl_->checked(from), settings));
}
Layer Network::adaptive_average_pool(Layer from, Extent output) {
  return impl_->added(impl_->builder.adaptive_average_pool(impl_->checked(from), output));
}
Layer Network::local_response_norm(Layer from, const LocalResponseNormSettings& settings) {
  return impl_->added(impl_->builder.local_response_norm(impl_->checked(from), settings));
}
Layer Network::dropout(Layer from, double probability) {
  return impl_->added(impl_->builder.dropout(impl_->checked(from), probability));
}
Layer Network::concat(const std::vector<Layer>& parts) {
  std::vector<NodeId> nodes;
  for (const Layer& part : parts) nodes.push_back(impl_->checked(part));
  return impl_->added(impl_->builder.concat(nodes));
}
Layer Network::add(Layer left, Layer right) {
  return impl_->added(impl_->builder.add(impl_->checked(left), impl_->checked(right)));
}

namespace {

OptimizerSettings optimizer_of(const TrainOptions& options) {
  OptimizerSettings settings = default_settings(optimizer_named(options.optimizer));
  if (options.learning_rate) settings.learning_rate = *options.learning_rate;
  if (options.weight_decay) settings.weight_decay = *options.weight_decay;
  if (!options.momentum) return settings;
  if (settings.kind == OptimizerKind::adam || settings.kind == OptimizerKind::adamw)
    throw InputError("momentum does not concern the optimizer " + options.optimizer);
  settings.momentum = *options.momentum;
  return settings;
}

JobOptions job_options(const TrainOptions& options, Graph network) {
  JobOptions job;
  job.network = std::move(network);
  job.data = options.data;
  job.test = options.test;
  job.batch = options.batch;
  job.optimizer = optimizer_of(options);
  job.schedule.kind = schedule_named(options.schedule);
  if (options.warmup_steps != 0) job.schedule.warmup = Duration{options.warmup_steps, false};
  job.label_smoothing = options.label_smoothing;
  job.augment = options.augment;
  job.strict = options.strict;
  job.epochs = options.epochs;
  job.steps = options.steps;
  job.seed = options.seed;
  job.shuffle = options.shuffle;
  job.workers = options.workers;
  if (!options.chunks.empty()) job.plan.chunks = options.chunks;
  job.plan.segments = options.segments;
  job.plan.deterministic = options.deterministic;
  return job;
}

// Gathers the report and passes everything on.
class Reporter : public TrainObserver {
 public:
  Reporter(const TrainOptions& options, RunFolder* folder) : options_(options), folder_(folder) {}

  void on_step(const StepRecord& record) override {
    if (folder_) folder_->on_step(record);
  }
  void on_test(const Evaluation& tested) override {
    if (folder_) folder_->on_test(tested);
  }
  void on_epoch(const EpochRecord& record) override {
    if (folder_) folder_->on_epoch(record);
    epochs_.add(record);
    if (options_.on_epoch) options_.on_epoch(record);
  }
  void on_rest(const TrainState& state) override {
    if (folder_) folder_->on_rest(state);
  }
  std::string way_back() override { return folder_ ? folder_->way_back() : ""; }

  TrainReport report(const Speed& speed) const {
    return {epochs_.epochs(), speed.images_per_s,
            folder_ ? latest_checkpoint(folder_->path()).string() : ""};
  }

 private:
  const TrainOptions& options_;
  RunFolder* folder_;  // null if nothing is to be written
  EpochHistory epochs_;
};

}  // namespace

TrainReport train(const Network& network, const TrainOptions& options) {
  const TrainJob job = make_job(job_options(options, network.impl_->finished()));
  TrainGoal goal;
  goal.last_step =
      last_step_of(options.epochs, options.steps, steps_per_epoch(job.recipe, *job.data));
  const Purpose purpose = options.out.empty() ? Purpose::training : Purpose::saved_training;
  require_memory(job, job.plan, memory_limits(), purpose);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, job.recipe.seed);

  std::optional<RunFolder> folder;
  if (!options.out.empty()) {
    NewRunFolder fresh(options.out);
    write_run_json(fresh.path(), job, goal.last_step);
    folder.emplace(fresh.path(), executor, goal.from, CheckpointPolicy{}, job.class_names);
    fresh.keep();
  }
  Reporter reporter(options, folder ? &*folder : nullptr);
  const Speed speed = train(executor, job.recipe, job.data, job.test, goal, reporter);
  if (folder) write_end(folder->path(), speed);
  return reporter.report(speed);
}

bool has_data(const std::string& name) { return is_fetched(name); }

}  // namespace regatta
