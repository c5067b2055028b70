#include "report/granularity.h"

#include <algorithm>
#include <cmath>

#include "platform/disturbance.h"
#include "report/statistics.h"
#include "report/text.h"

namespace regatta {
namespace {

// A run on one worker is the same work; less than this is noise.
constexpr double noise = 1.02;

// The median of those in even places, or in odd ones.
double every_other(const std::vector<double>& rounds, std::size_t first) {
  std::vector<double> half;
  for (std::size_t i = first; i < rounds.size(); i += 2) half.push_back(rounds[i]);
  return median_of(half);
}

Json run_json(const GranularityRun& run) {
  return {{"name", run.name},
          {"step_s", run.step_seconds()},
          {"predicted_s", run.predicted > 0 ? Json(run.predicted) : Json()},
          {"by_costs_s", run.by_costs > 0 ? Json(run.by_costs) : Json()},
          {"rounds_s", run.rounds},
          {"dropped", run.dropped}};
}

}  // namespace

double GranularityRun::step_seconds() const { return median_of(rounds); }

const GranularityRun* GranularityCell::best_fixed() const {
  const auto best = std::ranges::min_element(fixed, {}, [](const GranularityRun& run) {
    return run.rounds.empty() ? 1e30 : run.step_seconds();
  });
  return best == fixed.end() || best->rounds.empty() ? nullptr : &*best;
}

double GranularityCell::ratio() const {
  const GranularityRun* best = best_fixed();
  if (!best) return 1;
  // The least of many is less by chance: which is the best is said by one half of the rounds, and
  // how long it takes by the other; both ways round.
  constexpr std::size_t enough = 4;
  if (best->rounds.size() < enough || automatic.rounds.size() < enough)
    return automatic.step_seconds() / best->step_seconds();
  double product = 1;
  for (const std::size_t half : {0, 1}) {
    double least = 1e30, other = 0;
    for (const GranularityRun& run : fixed) {
      if (run.rounds.size() < enough || every_other(run.rounds, half) >= least) continue;
      least = every_other(run.rounds, half);
      other = every_other(run.rounds, 1 - half);
    }
    product *= every_other(automatic.rounds, 1 - half) / other;
  }
  return std::sqrt(product);
}

double GranularityCell::one_worker_ratio() const {
  return one_worker ? automatic.step_seconds() / one_worker->step_seconds() : 1;
}

double GranularityCell::prediction_error() const {
  const double measured = automatic.step_seconds();
  return measured > 0 ? std::abs(automatic.predicted - measured) / measured : 0;
}

double GranularityCell::cost_error() const {
  const double measured = automatic.step_seconds();
  return measured > 0 ? std::abs(automatic.by_costs - measured) / measured : 0;
}

GranularitySummary summarise(const std::vector<GranularityCell>& cells) {
  GranularitySummary made;
  std::vector<double> errors, cost_errors;
  std::size_t near = 0;
  for (const GranularityCell& cell : cells) {
    if (!cell.not_run.empty()) continue;
    ++made.cells;
    near += cell.ratio() <= 1.05;
    made.worst_ratio = std::max(made.worst_ratio, cell.ratio());
    made.slower_than_one_worker += cell.one_worker_ratio() > noise;
    if (cell.automatic.predicted > 0) errors.push_back(cell.prediction_error());
    if (cell.automatic.by_costs > 0) cost_errors.push_back(cell.cost_error());
  }
  if (made.cells > 0)
    made.within_5_percent = static_cast<double>(near) / static_cast<double>(made.cells);
  made.median_error = quantile_of(errors, 0.5);
  made.error_95 = quantile_of(errors, 0.95);
  made.median_cost_error = quantile_of(cost_errors, 0.5);
  made.cost_error_95 = quantile_of(cost_errors, 0.95);
  return made;
}

std::string granularity_table(const std::vector<GranularityCell>& cells) {
  std::string text = formatted("%-9s %-10s %5s  %-28s %10s %10s  %-12s %10s %6s %10s %6s\n",
                               "model", "input", "batch", "automatic", "ms", "predicted",
                               "best fixed", "ms", "ratio", "1 worker", "error");
  for (const GranularityCell& cell : cells) {
    text += formatted("%-9s %-10s %5lld  ", cell.model.c_str(), cell.input.c_str(),
                      static_cast<long long>(cell.batch));
    if (!cell.not_run.empty()) {
      text += "not run: " + cell.not_run + "\n";
      continue;
    }
    const GranularityRun* best = cell.best_fixed();
    text += formatted("%-28s %10.3f %10.3f  ", cell.automatic.name.c_str(),
                      1e3 * cell.automatic.step_seconds(), 1e3 * cell.automatic.predicted);
    text += formatted("%-12s %10.3f %6.3f %10.3f %5.1f%%\n", best ? best->name.c_str() : "none",
                      best ? 1e3 * best->step_seconds() : 0.0, cell.ratio(),
                      cell.one_worker ? 1e3 * cell.one_worker->step_seconds() : 0.0,
                      100 * cell.prediction_error());
    std::string dropped;
    for (const GranularityRun& run : cell.fixed)
      if (run.dropped) dropped += (dropped.empty() ? "" : ", ") + run.name;
    if (!dropped.empty()) text += "    measured once, far behind: " + dropped + "\n";
    if (const std::string disturbed = disturbed_text(mean_if_any(cell.taken)); !disturbed.empty())
      text += "    " + disturbed + "\n";
  }
  const GranularitySummary all = summarise(cells);
  text += formatted(
      "%zu cells: automatic within 5%% of the best fixed choice in %.1f%%, at worst %.3f times its "
      "time\n",
      all.cells, 100 * all.within_5_percent, all.worst_ratio);
  text += formatted("slower than one worker in %zu cells\n", all.slower_than_one_worker);
  text += formatted("prediction error: median %.1f%%, 95th percentile %.1f%%\n",
                    100 * all.median_error, 100 * all.error_95);
  return text + formatted("by operators' costs alone, before plans are tried: %.1f%%, %.1f%%\n",
                          100 * all.median_cost_error, 100 * all.cost_error_95);
}

std::string granularity_csv(const std::vector<GranularityCell>& cells) {
  std::string text = "model,input,batch,plan,step_s,predicted_s,by_costs_s,dropped\n";
  for (const GranularityCell& cell : cells) {
    const auto row = [&](const char* kind, const GranularityRun& run) {
      if (run.rounds.empty()) return;
      // Names of plans have commas.
      text += cell.model + "," + cell.input + "," + std::to_string(cell.batch) + ",\"" + kind +
              " " + run.name + "\"";
      text += formatted(",%.6g,%.6g,%.6g,%d\n", run.step_seconds(), run.predicted, run.by_costs,
                        run.dropped ? 1 : 0);
    };
    row("auto", cell.automatic);
    if (cell.one_worker) row("one worker", *cell.one_worker);
    for (const GranularityRun& run : cell.fixed) row("fixed", run);
  }
  return text;
}

Json granularity_json(const std::vector<GranularityCell>& cells) {
  Json rows = Json::array();
  for (const GranularityCell& cell : cells) {
    Json row{{"model", cell.model}, {"input", cell.input}, {"batch", cell.batch}};
    if (!cell.not_run.empty()) {
      row["not_run"] = cell.not_run;
    } else {
      row["automatic"] = run_json(cell.automatic);
      row["one_worker"] = cell.one_worker ? run_json(*cell.one_worker) : Json();
      row["fixed"] = Json::array();
      for (const GranularityRun& run : cell.fixed) row["fixed"].push_back(run_json(run));
      row["ratio"] = cell.ratio();
      row["one_worker_ratio"] = cell.one_worker_ratio();
      row["prediction_error"] = cell.prediction_error();
      row["cost_error"] = cell.cost_error();
      const auto taken = mean_if_any(cell.taken);
      row["taken_by_others"] = taken ? Json(*taken) : Json();
    }
    rows.push_back(std::move(row));
  }
  const GranularitySummary all = summarise(cells);
  return {{"cells", rows},
          {"summary",
           {{"cells", all.cells},
            {"within_5_percent", all.within_5_percent},
            {"worst_ratio", all.worst_ratio},
            {"slower_than_one_worker", all.slower_than_one_worker},
            {"median_prediction_error", all.median_error},
            {"prediction_error_95", all.error_95},
            {"median_cost_error", all.median_cost_error},
            {"cost_error_95", all.cost_error_95}}}};
}

}  // namespace regatta
