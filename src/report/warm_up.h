// Where a run's warm-up ends, found in the durations of its steps by change-point detection.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace regatta {

enum class Course {
  flat,      // the same speed from the first step on
  warm_up,   // slower at first, then steady
  slowdown,  // faster at first, then steady
  unsteady,  // no speed lasts for half of the run
};
std::string_view course_name(Course course);

struct WarmUp {
  Course course = Course::flat;
  std::size_t steps = 0;  // before the steady state begins
  double seconds = 0;     // they took
  double steady = 0;      // seconds of a typical steady step
  // The first step (counted from 0) after the steady state began that starts a lasting stretch of
  // another speed, or the number of steps: a run that slows down later is told of, not hidden.
  std::size_t steady_until = 0;
};

// `durations`: of steps, in seconds, all above 0. A stretch of steps counts as steady while its
// speed is within `tolerance` of the speed that most steps have.
WarmUp find_warm_up(std::span<const double> durations, double tolerance = 0.05);

// First indices of stretches of about constant level; the first is 0. Penalised least squares over
// all cuts (PELT), after single outliers were clipped.
std::vector<std::size_t> change_points(std::span<const double> series);

}  // namespace regatta
