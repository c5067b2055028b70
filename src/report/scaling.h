// What measured throughputs say about scaling: speedup, efficiency, Amdahl's serial fraction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/page.h"
#include "report/statistics.h"
#include "report/warm_up.h"

namespace regatta {

// One run of one cell.
struct ScalingSample {
  std::vector<double> step_seconds;
  double images_per_step = 0;
  std::optional<double> taken_by_others = {};  // share of the workers' CPU time; none: unknown
};
// Images over the time of all steps after those that find_warm_up() takes for the warm-up.
double throughput_of(const ScalingSample& sample);

// A setting that is measured several times.
struct ScalingCell {
  std::string scheduler, input;
  std::int64_t batch = 0;
  int workers = 1;
  std::vector<ScalingSample> samples;  // one per repeat
  // Where groups differ: what each of them reaches alone, images a second.
  std::vector<double> groups_alone;
  Json idle_causes;  // cause -> share of the workers' time; null without a trace
};

struct ScalingRow {
  ScalingCell cell;
  std::vector<double> repeats;                    // images a second, each after its own warm-up
  double images_per_s = 0;                        // their median
  double median_images_per_s = 0;                 // of single steps
  Interval interval;                              // of images_per_s; see median_interval()
  std::optional<double> taken_by_others;          // mean over repeats; none: unknown
  double warmup_steps = 0, warmup_seconds = 0;    // medians over repeats
  Course course = Course::flat;                   // the worst of the repeats
  double speedup = 0, efficiency = 0;             // percent
  std::optional<double> ideal, ideal_efficiency;  // against the heterogeneous ideal; percent
};

// Throughput on N workers is that on one, divided by serial + (1 - serial) / N.
struct AmdahlFit {
  double serial_fraction = 0;
  Interval interval;  // of the runs' own fractions: noise and misfit together
};

// Throughputs (images/s) of the runs on `workers` times the first row's number of workers.
struct AmdahlRuns {
  double workers = 1;
  std::vector<double> rates;
};
// Each run's speedup is against the median of the first row. Of all runs the least sum of absolute
// errors of 1 / speedup, as shares of it: a disturbed one has one vote, not the weight of its
// distance. Nothing if no run has more workers than the first row's.
std::optional<AmdahlFit> fit_amdahl(const std::vector<AmdahlRuns>& rows);

// Rows that differ in the number of workers alone; speedups are against the fewest of them.
struct ScalingSeries {
  std::string scheduler, input;
  std::int64_t batch = 0;
  std::vector<ScalingRow> rows;  // by workers
  std::optional<AmdahlFit> amdahl;
};

struct ScalingResult {
  std::string model;
  std::vector<ScalingSeries> series;
};

ScalingResult analyse_scaling(std::string model, std::vector<ScalingCell> cells);

std::string scaling_table(const ScalingResult& result);
std::string scaling_csv(const ScalingResult& result);
Json scaling_json(const ScalingResult& result);
PageData scaling_page(const ScalingResult& result, const Json& machine);

// Every (cell, repeat), all cells once per round, each round in its own order that `seed` fixes:
// what disturbs the machine for a while hits all cells alike.
struct Turn {
  std::size_t cell = 0, repeat = 0;
};
std::vector<Turn> interleaved(std::size_t cells, std::size_t repeats, std::uint64_t seed);

}  // namespace regatta
