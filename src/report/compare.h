// A run beside its prediction: bound, planned, simulated and measured, and the tasks behind the
// differences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/arrivals.h"

namespace regatta {

struct CompareRow {
  std::string quantity;  // "step_s", "energy_j", "busy cpu 0", "phase forward", "sync combine s1"
  std::string unit;      // "s", "J", "bytes", "share"
  std::optional<double> bound, planned, simulated, measured;
};

// Why a kind of task made a difference; seconds a step, of all workers together, measured less
// simulated.
struct Difference {
  std::string task, why;
  double seconds = 0;
};

// What was known before the run, as far as it was.
struct Planned {
  std::optional<double> step_s, energy_j, peak_bytes;
  std::optional<double> watts;  // drawn at least, however short a step is
  std::vector<double> busy;     // by worker, shares of the time
  std::optional<double> bound;  // seconds that no plan of this model, batch and machine undercuts
  // Seconds that the workers' forward and backward tasks of a step take together, by the lower ends
  // of their costs.
  std::optional<double> least_work_s;
  // For several ranks: each rank played by itself, each exchange as if no other messages travelled.
  std::optional<RankMeetings> meetings;
  // Seconds that no way to add gradients undercuts: for each exchange by its name, and for all.
  std::map<std::string, double> message_bounds;
  std::optional<double> exchange_bound;
};

struct Comparison {
  std::vector<CompareRow> rows;
  std::vector<Difference> differences;  // largest first
  std::string remark;                   // how it was made, if not by our own policy
  // Tasks took less than the lower ends of their costs, so there is no bound.
  bool profile_outdated = false;
  // The share of the workers' CPU time in the measured run; none: unknown.
  std::optional<double> taken_by_others = {};

  const CompareRow* find(const std::string& quantity) const;
};

// Both records hold several steps of the same task list. Peak memory is in their metadata, under
// peak_bytes_key, where it is known.
inline constexpr const char* peak_bytes_key = "peak_bytes";
Comparison compare(const trace::Record& measured, const trace::Record& simulated,
                   const Planned& planned);

Json to_json(const Comparison& comparison);
std::string table_of(const Comparison& comparison);  // for a terminal, with bars

}  // namespace regatta
