#include "report/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <utility>

#include "platform/disturbance.h"
#include "report/text.h"
#include "trace/energy.h"

namespace regatta {
namespace {

constexpr std::size_t name_width = 36;
constexpr const char* busy_prefix = "busy ";
constexpr const char *messages_prefix = "messages ", *arrival_prefix = "arrival ";

using trace::Record;
using trace::Task;
using trace::Time;

// What the rows and differences are made of, of one of the two records.
struct Measure {
  explicit Measure(const Record& from)
      : record(from), analysis(trace::analyse(from, trace::whole_window(from))) {
    steps = static_cast<double>(std::max<std::int64_t>(analysis.steps, 1));
    const trace::Window& window = analysis.window;
    std::map<std::int64_t, const Task*> by_id;
    std::vector<std::vector<const Task*>> by_worker(record.workers.size());
    for (const Task& task : record.tasks) {
      by_id[task.id] = &task;
      if (task.worker >= 0) by_worker[static_cast<std::size_t>(task.worker)].push_back(&task);
    }
    for (std::vector<const Task*>& mine : by_worker) {
      std::ranges::sort(mine, {}, [](const Task* task) { return task->start; });
      Time free = window.start;
      for (const Task* task : mine) {
        const bool inside = task->start >= window.start && task->end <= window.end;
        if (inside) note(*task, free);
        free = std::max(free, task->end);
      }
    }
    note_meetings(by_id);
    met = rank_meetings(record, window);
    for (std::size_t w = 0; w < record.workers.size(); ++w)
      if (trace::computes(record.workers[w])) computing.push_back(w);
  }

  struct Kind {
    double tasks = 0, busy = 0, overhead = 0, blamed = 0;  // seconds in the window
    std::map<std::int32_t, double> workers;                // tasks by worker
  };

  void note(const Task& task, Time free) {
    Kind& kind = kinds[trace::label(record.kind_of(task))];
    ++kind.tasks;
    kind.busy += trace::seconds(task.duration());
    if (task.ready != trace::unknown)
      kind.overhead += trace::seconds(std::max<Time>(0, task.start - std::max(free, task.ready)));
    ++kind.workers[task.worker];
    phases[trace::main_phase(record.kind_of(task))] += trace::seconds(task.duration());
  }

  // Where chunks or slots meet: how long the first waits for the last.
  void note_meetings(const std::map<std::int64_t, const Task*>& by_id) {
    for (const trace::KindUse& use : analysis.kinds)
      kinds[trace::label(record.kinds[static_cast<std::size_t>(use.kind)])].blamed +=
          trace::seconds(use.blamed);
    auto edge = record.dependencies.begin();
    for (const Task& task : record.tasks) {
      std::map<std::int32_t, Time> arrivals;  // by chunk: the last it did for this
      while (edge != record.dependencies.end() && edge->task < task.id) ++edge;
      for (; edge != record.dependencies.end() && edge->task == task.id; ++edge) {
        const auto found = by_id.find(edge->on);
        // What the step before left was there long ago.
        if (found == by_id.end() || found->second->step != task.step) continue;
        const std::int32_t chunk = record.kind_of(*found->second).chunk;
        if (chunk < 0) continue;
        Time& arrival = arrivals.try_emplace(chunk, found->second->end).first->second;
        arrival = std::max(arrival, found->second->end);
      }
      const std::string phase = trace::main_phase(record.kind_of(task));
      const bool meets = phase == "combine" || phase == "combine_gradient" || phase == "reduce";
      if (!meets || arrivals.size() < 2) continue;
      const auto [first, last] = std::ranges::minmax(std::views::values(arrivals));
      if (last < analysis.window.start || last > analysis.window.end) continue;
      auto& [sum, times] = meetings[trace::label(record.kind_of(task))];
      sum += trace::seconds(last - first);
      times += 1;
    }
  }

  double step_s() const { return trace::seconds(analysis.wall()) / steps; }
  std::optional<double> energy_j() const {
    const auto energy =
        trace::energy_of(record.counters, analysis.window.first_step, analysis.window.last_step);
    if (!energy) return std::nullopt;
    return energy->a_step();
  }
  std::optional<double> peak_bytes() const {
    const auto found = record.metadata.find(peak_bytes_key);
    if (found == record.metadata.end()) return std::nullopt;
    return std::strtod(found->second.c_str(), nullptr);
  }
  // Busy share of the worker with this number among those that compute.
  std::optional<double> busy(std::size_t number) const {
    if (number >= computing.size() || analysis.wall() <= 0) return std::nullopt;
    return trace::seconds(analysis.workers[computing[number]].busy) /
           trace::seconds(analysis.wall());
  }

  const Record& record;
  trace::Analysis analysis;
  double steps = 1;
  std::map<std::string, Kind> kinds;                          // by label
  std::map<std::string, double> phases;                       // seconds in the window
  std::map<std::string, std::pair<double, double>> meetings;  // by label: seconds, times
  std::vector<std::size_t> computing;                         // workers that compute
  std::optional<RankMeetings> met;
};

template <class Map>
std::optional<double> value_in(const Map& map, const std::string& key, double divisor) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second / divisor;
}

std::optional<double> mean_in(const std::map<std::string, std::pair<double, double>>& map,
                              const std::string& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second.first / found->second.second;
}

// Adds rows for each exchange: how long its messages take, and when each rank arrives.
void add_rank_rows(Comparison& made, const Measure& measured, const Measure& simulated,
                   const Planned& planned) {
  if (!measured.met) return;
  const auto total = [](const std::optional<RankMeetings>& met) {
    return met ? std::optional(met->exchange_s) : std::nullopt;
  };
  made.rows.push_back({"exchange_s", "s", planned.exchange_bound, total(planned.meetings),
                       total(simulated.met), total(measured.met)});
  for (const RankMeeting& real : measured.met->all) {
    const auto in = [&](const std::optional<RankMeetings>& met) {
      return met ? met->find(real.name) : nullptr;
    };
    const RankMeeting *told = in(simulated.met), *thought = in(planned.meetings);
    made.rows.push_back(
        {messages_prefix + real.name, "s", value_in(planned.message_bounds, real.name, 1),
         thought && real.gradients ? std::optional(thought->messages) : std::nullopt,
         told ? std::optional(told->messages) : std::nullopt, real.messages});
    for (const auto& [node, seconds] : real.arrivals) {
      const auto at = [&node](const RankMeeting* meeting) {
        return meeting ? value_in(meeting->arrivals, node, 1) : std::nullopt;
      };
      made.rows.push_back({arrival_prefix + real.name + ", " + node, "s", std::nullopt, at(thought),
                           at(told), seconds});
    }
  }
}

void add_rows(Comparison& made, const Measure& measured, const Measure& simulated,
              const Planned& planned) {
  const std::optional<double> bound = made.profile_outdated ? std::nullopt : planned.bound;
  made.rows.push_back(
      {"step_s", "s", bound, planned.step_s, simulated.step_s(), measured.step_s()});
  const auto least_j =
      planned.watts && bound ? std::optional(*planned.watts * *bound) : std::nullopt;
  made.rows.push_back(
      {"energy_j", "J", least_j, planned.energy_j, simulated.energy_j(), measured.energy_j()});
  made.rows.push_back({"peak_bytes", "bytes", std::nullopt, planned.peak_bytes,
                       simulated.peak_bytes(), measured.peak_bytes()});
  // Seconds of a step that no order of these tasks on so many workers undercuts.
  const auto best_order = [](const Measure& each) {
    return trace::seconds(each.analysis.bound) / each.steps;
  };
  made.rows.push_back({"best order of these tasks", "s", std::nullopt, std::nullopt,
                       best_order(simulated), best_order(measured)});
  const std::vector<std::string> lanes = trace::lane_names(measured.record);
  for (std::size_t w = 0; w < measured.computing.size(); ++w)
    made.rows.push_back({busy_prefix + lanes[measured.computing[w]], "share", std::nullopt,
                         w < planned.busy.size() ? std::optional(planned.busy[w]) : std::nullopt,
                         simulated.busy(w), measured.busy(w)});
  for (const auto& [phase, seconds] : measured.phases)
    made.rows.push_back({"phase " + phase, "s", std::nullopt, std::nullopt,
                         value_in(simulated.phases, phase, simulated.steps),
                         seconds / measured.steps});
  for (const auto& [label, sum] : measured.meetings)
    made.rows.push_back({"sync " + label, "s", 0.0, std::nullopt,
                         mean_in(simulated.meetings, label), sum.first / sum.second});
  add_rank_rows(made, measured, simulated, planned);
}

// Whether tasks, or a whole step, took less than the lower ends of costs allow.
bool undercuts(const Measure& measured, const Measure& simulated, const Planned& planned) {
  double work = 0;
  for (const char* phase : {"forward", "backward", "weight_gradient"})
    work += value_in(measured.phases, phase, measured.steps).value_or(0);
  if (planned.least_work_s && work > 0 && work < *planned.least_work_s) return true;
  if (!planned.bound) return false;
  return measured.step_s() < *planned.bound || simulated.step_s() < *planned.bound ||
         planned.step_s.value_or(*planned.bound) < *planned.bound;
}

// The worker that ran most of them.
std::int32_t usual(const Measure::Kind& kind) {
  return std::ranges::max_element(kind.workers, {}, [](const auto& each) { return each.second; })
      ->first;
}

void add_differences(Comparison& made, const Measure& measured, const Measure& simulated) {
  for (const auto& each : measured.kinds) {
    const std::string& label = each.first;
    const Measure::Kind& real = each.second;
    const auto found = simulated.kinds.find(label);
    if (found == simulated.kinds.end() || real.tasks == 0 || found->second.tasks == 0) continue;
    const Measure::Kind& told = found->second;
    const auto add = [&](const std::string& why, double seconds) {
      made.differences.push_back({label, why, seconds});
    };
    const double work = real.busy / measured.steps - told.busy / simulated.steps;
    // Messages have no costs in a profile.
    const bool travels = label.starts_with("exchange");
    add(std::string(work > 0 ? "slower" : "faster") +
            (travels ? " than simulated" : " than the profile said"),
        work);
    add("overhead before it", real.overhead / measured.steps - told.overhead / simulated.steps);
    add("others waited for it", real.blamed / measured.steps - told.blamed / simulated.steps);
    double elsewhere = 0;
    for (const auto& [worker, tasks] : real.workers)
      if (worker != usual(told)) elsewhere += tasks / real.tasks;
    double told_elsewhere = 0;
    for (const auto& [worker, tasks] : told.workers)
      if (worker != usual(told)) told_elsewhere += tasks / told.tasks;
    if (elsewhere - told_elsewhere > 0.5)
      made.differences.push_back(
          {label,
           "ran on another worker than simulated in " + percent_text(elsewhere) + " of the steps",
           0});
  }
  std::ranges::stable_sort(made.differences, std::greater{},
                           [](const Difference& each) { return std::abs(each.seconds); });
}

std::string shown(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "-";
  if (unit == "s") return seconds_text(*value);
  if (unit == "share") return percent_text(*value);
  if (unit == "bytes") return formatted("%.1f MB", *value / 1e6);
  return number_text(*value) + " " + unit;
}

// To so many characters, and one at least; those of UTF-8 may be several bytes.
std::string padded(const std::string& text, std::size_t width) {
  const auto shown = static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  return text + std::string(shown < width ? width - shown : 1, ' ');
}

std::string line_of(const CompareRow& row) {
  std::string text = padded(row.quantity, name_width);
  for (const auto& value : {row.bound, row.planned, row.simulated, row.measured})
    text += padded(shown(value, row.unit), 12);
  return text + "\n";
}

// A line for each worker; of more than a screen shows, the busiest and the idlest.
std::string lines_of_workers(std::vector<const CompareRow*> workers) {
  constexpr std::size_t most_lines = 40, at_each_end = 8;
  std::string text;
  const bool folded = workers.size() > most_lines;
  if (folded)
    std::ranges::stable_sort(workers, std::greater{},
                             [](const CompareRow* row) { return row->measured.value_or(0); });
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (folded && i == at_each_end) {
      i = workers.size() - at_each_end;
      text += "  (" + std::to_string(workers.size() - 2 * at_each_end) +
              " workers between the busiest and the idlest; --json FILE has all of them)\n";
    }
    text += line_of(*workers[i]);
  }
  return text;
}

std::string bars_of(const CompareRow& row) {
  const std::pair<const char*, std::optional<double>> bars[]{{"bound", row.bound},
                                                             {"planned", row.planned},
                                                             {"simulated", row.simulated},
                                                             {"measured", row.measured}};
  double longest = 0;
  for (const auto& [name, value] : bars) longest = std::max(longest, value.value_or(0));
  std::string text = "\n";
  for (const auto& [name, value] : bars)
    if (value && longest > 0)
      text += padded(name, 12) +
              std::string(static_cast<std::size_t>(std::lround(50 * *value / longest)), '#') + " " +
              shown(value, row.unit) + "\n";
  return text;
}

}  // namespace

const CompareRow* Comparison::find(const std::string& quantity) const {
  const auto found = std::ranges::find(rows, quantity, &CompareRow::quantity);
  return found == rows.end() ? nullptr : &*found;
}

Comparison compare(const Record& measured, const Record& simulated, const Planned& planned) {
  const Measure real(measured), told(simulated);
  Comparison made;
  made.profile_outdated = undercuts(real, told, planned);
  add_rows(made, real, told, planned);
  add_differences(made, real, told);
  made.taken_by_others = real.analysis.taken_by_others;
  return made;
}

Json to_json(const Comparison& comparison) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json rows = Json::array(), differences = Json::array();
  for (const CompareRow& row : comparison.rows)
    rows.push_back({{"quantity", row.quantity},
                    {"unit", row.unit},
                    {"bound", or_null(row.bound)},
                    {"planned", or_null(row.planned)},
                    {"simulated", or_null(row.simulated)},
                    {"measured", or_null(row.measured)}});
  for (const Difference& each : comparison.differences)
    differences.push_back({{"task", each.task}, {"why", each.why}, {"seconds", each.seconds}});
  return {{"rows", rows},
          {"differences", differences},
          {"remark", comparison.remark},
          {"profile_outdated", comparison.profile_outdated},
          {"taken_by_others", or_null(comparison.taken_by_others)}};
}

std::string table_of(const Comparison& comparison) {
  std::string text = padded("", name_width);
  for (const char* heading : {"bound", "planned", "simulated", "measured"})
    text += padded(heading, 12);
  text += "\n";
  std::size_t meetings = 0, rank_meetings = 0;
  std::vector<const CompareRow*> workers;  // consecutive rows
  for (const CompareRow& row : comparison.rows) {
    if (row.quantity.starts_with(busy_prefix)) {
      workers.push_back(&row);
      continue;
    }
    text += lines_of_workers(std::exchange(workers, {}));
    // A network has dozens of meeting points; --json has them all.
    if (row.quantity.starts_with("sync ") && ++meetings > 8) continue;
    if (row.quantity.starts_with(messages_prefix)) ++rank_meetings;
    if (row.quantity.starts_with(messages_prefix) || row.quantity.starts_with(arrival_prefix)) {
      if (rank_meetings > 8) continue;
    }
    text += line_of(row);
  }
  text += lines_of_workers(std::move(workers));
  if (meetings > 8)
    text += "  (" + std::to_string(meetings - 8) + " more points of synchronisation)\n";
  if (rank_meetings > 8)
    text += "  (" + std::to_string(rank_meetings - 8) +
            " more points where ranks meet; --json FILE has all of them)\n";
  if (const CompareRow* step = comparison.find("step_s")) text += bars_of(*step);
  text += "\nwhat made the difference, a step:\n";
  std::size_t told = 0;
  for (const Difference& each : comparison.differences) {
    if (++told > 10) break;
    text += "  " + padded(each.task, name_width) + padded(each.why, 34) +
            (each.seconds == 0 ? "" : (each.seconds > 0 ? "+" : "-")) +
            (each.seconds == 0 ? "" : seconds_text(std::abs(each.seconds))) + "\n";
  }
  const std::string disturbed = disturbed_text(comparison.taken_by_others);
  const std::string outdated =
      comparison.profile_outdated
          ? "tasks took less than the profile says they can: it is outdated, so no bound is shown; "
            "regatta calibrate measures anew"
          : "";
  for (const std::string& line : {disturbed, comparison.remark, outdated})
    if (!line.empty()) text += line + "\n";
  return text;
}

}  // namespace regatta
