// How the learning rate goes from step to step: a pure function, so that a resumed run, or one on
// other devices, takes the same steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.h"

namespace regatta {

enum class ScheduleKind { constant, step, cosine, one_cycle };

std::string_view schedule_name(ScheduleKind kind);
ScheduleKind schedule_named(std::string_view name);  // throws InputError with the nearest name

// By torch.optim.lr_scheduler's formulas, once a step: ConstantLR, StepLR, CosineAnnealingLR and
// OneCycleLR (cosine, two phases, its defaults), after LinearLR for `warmup` steps.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t steps = 0;      // where cosine and one-cycle end; from there on the rate stays
  std::int64_t step_size = 0;  // step: so many steps at each rate
  double gamma = 0.1;          // step: each rate is so much of the one before
  std::optional<double> final_rate = {};  // default: 0, for one-cycle the peak's 250000th part
  std::int64_t warmup = 0;
  double warmup_start = 0.01;   // of the learning rate
  bool cycle_momentum = false;  // one-cycle: from 0.95 to 0.85 and back

  bool operator==(const Schedule&) const = default;
};

struct Rates {
  double learning_rate = 0;
  std::optional<double> momentum = {};  // where the schedule has a say in it
};

// `step` counts from 0; `learning_rate` is the recipe's, for one-cycle the peak.
Rates rates_at(const Schedule& schedule, double learning_rate, std::int64_t step);

Json to_json(const Schedule& schedule);
Schedule schedule_from_json(const Json& json);

}  // namespace regatta
