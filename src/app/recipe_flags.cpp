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

void declare_recipe(CLI::App& app, RecipeFlags& flags) {
  app.add_option("--optimizer", flags.optimizer, "sgd, nesterov, adam, adamw, rmsprop or lars")
      ->type_name("NAME")
      ->capture_default_str();
  for (const auto& [flag, help] : number_help)
    app.add_option(flag, flags.numbers[flag], help)->type_name("X");
  app.add_option("--clip-norm", flags.clip_norm, "longest gradient, all parameters together")
      ->type_name("X");
  app.add_option("--clip-value", flags.clip_value, "largest number in a gradient")->type_name("X");
  app.add_option("--ema", flags.ema,
                 "average parameters, keeping this much each step, and test on the average")
      ->type_name("DECAY");
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
}

}  // namespace regatta::app
