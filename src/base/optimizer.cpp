#include "base/optimizer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"

namespace regatta {
namespace {

using enum OptimizerKind;

constexpr std::array<std::string_view, 6> names{"sgd",   "nesterov", "adam",
                                                "adamw", "rmsprop",  "lars"};

}  // namespace

std::string_view optimizer_name(OptimizerKind kind) {
  return names[static_cast<std::size_t>(kind)];
}

OptimizerKind optimizer_named(std::string_view name) {
  if (const auto found = std::ranges::find(names, name); found != names.end())
    return static_cast<OptimizerKind>(found - names.begin());
  throw InputError("optimizer '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, {names.begin(), names.end()}) +
                   ": use sgd, nesterov, adam, adamw, rmsprop or lars");
}

OptimizerSettings default_settings(OptimizerKind kind) {
  OptimizerSettings settings;
  settings.kind = kind;
  switch (kind) {
    case sgd:
    case nesterov:
      break;
    case adam:
      settings.learning_rate = 0.001;
      break;
    case adamw:
      settings.learning_rate = 0.001;
      settings.weight_decay = 0.01;
      break;
    case rmsprop:
      settings.momentum = 0;
      break;
    case lars:
      settings.learning_rate = 0.1;
      settings.weight_decay = 1e-4;
      break;
  }
  return settings;
}

const std::vector<OptimizerNumber>& optimizer_numbers() {
  using Settings = OptimizerSettings;
  const std::vector<OptimizerKind> all{sgd, nesterov, adam, adamw, rmsprop, lars};
  static const std::vector<OptimizerNumber> numbers{
      {"learning_rate", "--lr", &Settings::learning_rate, all},
      {"momentum", "--momentum", &Settings::momentum, {sgd, nesterov, rmsprop, lars}},
      {"weight_decay", "--weight-decay", &Settings::weight_decay, all},
      {"beta1", "--beta1", &Settings::beta1, {adam, adamw}},
      {"beta2", "--beta2", &Settings::beta2, {adam, adamw}},
      {"epsilon", "--epsilon", &Settings::epsilon, {adam, adamw, rmsprop, lars}},
      {"alpha", "--alpha", &Settings::alpha, {rmsprop}},
      {"trust", "--trust", &Settings::trust, {lars}}};
  return numbers;
}

bool OptimizerNumber::concerns(OptimizerKind kind) const {
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool keeps_moment(const OptimizerSettings& settings, int index) {
  switch (settings.kind) {
    case sgd:
    case nesterov:
    case lars:
      return index == 0;
    case adam:
    case adamw:
      return true;
    case rmsprop:
      return index == 1 || settings.momentum > 0;
  }
  throw Error("unknown optimizer");
}

}  // namespace regatta
