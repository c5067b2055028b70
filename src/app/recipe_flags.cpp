#include "app/recipe_flags.h"

#include "base/error.h"

namespace regatta::app {
namespace {

constexpr std::pair<const char*, const char*> number_help[]{
    {"--lr", "learning rate (default 0.01; adam and adamw 0.001, lars 0.1)"},
    {"--momentum", "momentum of sgd, nesterov, lars (default 0.9) and rmsprop (0)"},
    {"--weight-decay", "weight decay (default 0; adamw 0.01, lars 0.0001)"},
    {"--beta1", "of adam and adamw (default 0.9)"},
    {"--beta2", "of adam and adamw (default 0.999)"},
    {"--epsilon", "of adam, adamw, rmsprop and lars (default 1e-8)"},
    {"--alpha", "of rmsprop (default 0.99)"},
    {"--trust", "of lars (default 0.001)"}};

}  // namespace

void declare_measured_recipe(CLI::App& app, RecipeFlags& flags) {
  app.add_option("--optimizer", flags.optimizer, "sgd, nesterov, adam, adamw, rmsprop or lars")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--batch-norm", flags.batch_norm,
                 "statistics of the whole batch, or of each group of G consecutive samples of it:\n"
                 "then chunks and shares are whole groups, and none waits for another")
      ->type_name("whole|group:G")
      ->capture_default_str();
}

void declare_recipe(CLI::App& app, RecipeFlags& flags) {
  declare_measured_recipe(app, flags);
  for (const auto& [flag, help] : number_help)
    app.add_option(flag, flags.numbers[flag], help)->type_name("X");
  app.add_option("--clip-norm", flags.clip_norm, "longest gradient, all parameters together")
      ->type_name("X");
  app.add_option("--clip-value", flags.clip_value, "largest number in a gradient")->type_name("X");
  app.add_option("--ema", flags.ema,
                 "average parameters, keeping this much each step, and test on the average")
      ->type_name("DECAY");
  app.add_option("--accumulate", flags.accumulate, "batches that make one step (default 1)")
      ->type_name("K")
      ->check(whole_number(1));
  app.add_option("--schedule", flags.schedule,
                 "of the learning rate: constant, step, cosine, one-cycle")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--step-size", flags.step_size, "step: steps, or epochs such as 30e, at each rate")
      ->type_name("N|Ne");
  app.add_option("--gamma", flags.gamma, "step: each rate by the one before (default 0.1)")
      ->type_name("X");
  app.add_option("--final-lr", flags.final_lr, "cosine, one-cycle: the last rate")->type_name("X");
  app.add_flag("--cycle-momentum", flags.cycle_momentum,
               "one-cycle: the momentum goes from 0.95 to 0.85 and back");
  app.add_option("--warmup", flags.warmup,
                 "steps, or epochs such as 5e, to reach the learning rate")
      ->type_name("N|Ne");
  app.add_option("--warmup-start", flags.warmup_start,
                 "the part of the learning rate to begin with (default 0.01)")
      ->type_name("X");
  app.add_option("--label-smoothing", flags.label_smoothing,
                 "the part of a target that is spread over all classes")
      ->type_name("X");
  app.add_option("--mixup", flags.mixup, "blend images by shares drawn from Beta(ALPHA, ALPHA)")
      ->type_name("ALPHA");
  app.add_option("--dropout", flags.dropout, "probability of the model's dropout layers")
      ->type_name("P");
  add_wire_precision_flag(app, flags.wire_precision);
  app.add_option("--mask", flags.mask,
                 "weights that it masks are zero, from the first step to the last; made by\n"
                 "regatta tickets prune")
      ->type_name("FILE");
}

CLI::Option* add_wire_precision_flag(CLI::App& app, std::string& precision) {
  return app
      .add_option("--wire-precision", precision,
                  "bf16: gradients are rounded to bf16 whenever one rank sends them to another,\n"
                  "which halves the bytes; concerns several ranks only")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
}

void apply(const RecipeFlags& flags, JobOptions& job) {
  job.optimizer = default_settings(optimizer_named(flags.optimizer));
  for (const OptimizerNumber& number : optimizer_numbers()) {
    const std::optional<double>& given = flags.numbers.at(std::string(number.flag));
    if (!given) continue;
    if (!number.concerns(job.optimizer.kind))
      throw InputError(std::string(number.flag) + " does not concern --optimizer " +
                       flags.optimizer + ": drop it, or choose another optimizer");
    job.optimizer.*number.value = *given;
  }
  if (flags.clip_norm) job.optimizer.clip_norm = *flags.clip_norm;
  if (flags.clip_value) job.optimizer.clip_value = *flags.clip_value;
  if (flags.ema) job.optimizer.ema = *flags.ema;
  job.accumulate = flags.accumulate.value_or(1);
  ScheduleOptions& schedule = job.schedule;
  schedule.kind = schedule_named(flags.schedule);
  if (flags.step_size) schedule.step_size = Duration::parse("--step-size", *flags.step_size);
  if (flags.warmup) schedule.warmup = Duration::parse("--warmup", *flags.warmup);
  schedule.gamma = flags.gamma;
  schedule.final_rate = flags.final_lr;
  schedule.warmup_start = flags.warmup_start;
  schedule.cycle_momentum = flags.cycle_momentum;
  job.label_smoothing = flags.label_smoothing.value_or(0);
  job.mixup = flags.mixup.value_or(0);
  job.dropout = flags.dropout;
  job.batch_norm_group = batch_norm_group_named("--batch-norm", flags.batch_norm);
  job.wire_precision = wire_precision_named(flags.wire_precision);
  if (flags.mask) {
    job.mask = read_mask(*flags.mask);
    job.mask_file = *flags.mask;
  }
}

}  // namespace regatta::app
