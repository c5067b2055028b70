#include "plan/learning_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/files.h"

namespace regatta {
namespace {

constexpr std::array<std::string_view, 4> names{"constant", "step", "cosine", "one-cycle"};

// From `first` to `last` along half a cosine wave.
double annealed(double first, double last, double done) {
  return last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * done));
}

// PyTorch's defaults.
constexpr double rising_part = 0.3, first_divisor = 25, final_divisor = 1e4;
constexpr double low_momentum = 0.85, high_momentum = 0.95;

Rates one_cycle(const Schedule& schedule, double peak, std::int64_t step) {
  const double first = peak / first_divisor;
  const double final_rate = schedule.final_rate.value_or(first / final_divisor);
  const auto steps = static_cast<double>(schedule.steps);
  const double top = rising_part * steps - 1, end = steps - 1;
  const double at = std::min(static_cast<double>(step), end);
  const bool rising = at <= top;
  const double done = rising ? at / top : (at - top) / (end - top);
  Rates rates;
  rates.learning_rate = rising ? annealed(first, peak, done) : annealed(peak, final_rate, done);
  if (schedule.cycle_momentum)
    rates.momentum = rising ? annealed(high_momentum, low_momentum, done)
                            : annealed(low_momentum, high_momentum, done);
  return rates;
}

}  // namespace

std::string_view schedule_name(ScheduleKind kind) { return names[static_cast<std::size_t>(kind)]; }

ScheduleKind schedule_named(std::string_view name) {
  if (const auto found = std::ranges::find(names, name); found != names.end())
    return static_cast<ScheduleKind>(found - names.begin());
  throw InputError("schedule '" + std::string(name) + "' is unknown" +
                   did_you_mean(name, {names.begin(), names.end()}) +
                   ": use constant, step, cosine or one-cycle");
}

Rates rates_at(const Schedule& schedule, double learning_rate, std::int64_t step) {
  if (schedule.kind == ScheduleKind::one_cycle) return one_cycle(schedule, learning_rate, step);
  if (step < schedule.warmup) {
    const double done = static_cast<double>(step) / static_cast<double>(schedule.warmup);
    return {learning_rate * (schedule.warmup_start + (1 - schedule.warmup_start) * done)};
  }
  const std::int64_t since = step - schedule.warmup;
  if (schedule.kind == ScheduleKind::step)
    return {learning_rate *
            std::pow(schedule.gamma, static_cast<double>(since / schedule.step_size))};
  if (schedule.kind == ScheduleKind::cosine) {
    const auto length = static_cast<double>(schedule.steps - schedule.warmup);
    const double done = std::min(1.0, static_cast<double>(since) / length);
    return {annealed(learning_rate, schedule.final_rate.value_or(0), done)};
  }
  return {learning_rate};
}

Json to_json(const Schedule& schedule) {
  Json json{{"name", schedule_name(schedule.kind)}};
  if (schedule.steps > 0) json["steps"] = schedule.steps;
  if (schedule.kind == ScheduleKind::step) {
    json["step_size"] = schedule.step_size;
    json["gamma"] = schedule.gamma;
  }
  if (schedule.final_rate) json["final_rate"] = *schedule.final_rate;
  if (schedule.warmup > 0) {
    json["warmup"] = schedule.warmup;
    json["warmup_start"] = schedule.warmup_start;
  }
  if (schedule.cycle_momentum) json["cycle_momentum"] = true;
  return json;
}

Schedule schedule_from_json(const Json& json) {
  Schedule schedule;
  schedule.kind = schedule_named(json.at("name").get<std::string>());
  schedule.steps = json.value("steps", schedule.steps);
  schedule.step_size = json.value("step_size", schedule.step_size);
  schedule.gamma = json.value("gamma", schedule.gamma);
  if (const auto found = json.find("final_rate"); found != json.end())
    schedule.final_rate = found->get<double>();
  schedule.warmup = json.value("warmup", schedule.warmup);
  schedule.warmup_start = json.value("warmup_start", schedule.warmup_start);
  schedule.cycle_momentum = json.value("cycle_momentum", false);
  const bool ends =
      schedule.kind == ScheduleKind::cosine || schedule.kind == ScheduleKind::one_cycle;
  if (ends && schedule.steps <= schedule.warmup)
    throw InputError("recipe: its schedule does not say its steps");
  if (schedule.kind == ScheduleKind::step && schedule.step_size < 1)
    throw InputError("recipe: its schedule's step_size must be 1 or more");
  return schedule;
}

}  // namespace regatta
