#include "report/fidelity.h"

#include <algorithm>
#include <cmath>

#include "platform/disturbance.h"
#include "report/statistics.h"
#include "report/text.h"

namespace regatta {
namespace {

constexpr double worth_ordering = 0.03;

// A line below a cell's own, if it was disturbed.
std::string disturbed_line(const FidelityCell& cell) {
  const std::string text = disturbed_text(mean_if_any(cell.taken));
  return text.empty() ? "" : "    " + text + "\n";
}

bool was_run(const FidelityCell& cell) { return cell.not_run.empty() && !cell.measured.empty(); }

}  // namespace

double FidelityCell::step_s() const { return median_of(measured); }

double FidelityCell::error() const { return std::abs(simulated - step_s()) / step_s(); }

double FidelityCell::spread() const {
  const auto [least, most] = std::ranges::minmax(measured);
  return (most - least) / step_s();
}

FidelitySummary summarise(const std::vector<FidelityCell>& cells) {
  FidelitySummary summary;
  std::vector<double> errors;
  std::int64_t agree = 0, agree_within = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!was_run(cells[i])) continue;
    errors.push_back(cells[i].error());
    for (std::size_t j = i + 1; j < cells.size(); ++j) {
      if (!was_run(cells[j])) continue;
      const double one = cells[i].step_s(), other = cells[j].step_s();
      if (std::abs(one - other) <= worth_ordering * std::min(one, other)) continue;
      const bool same = (one < other) == (cells[i].simulated < cells[j].simulated);
      ++summary.pairs;
      agree += same ? 1 : -1;
      if (cells[i].model != cells[j].model) continue;
      ++summary.pairs_within;
      agree_within += same ? 1 : -1;
    }
  }
  summary.cells = errors.size();
  if (errors.empty()) return summary;
  summary.worst_error = std::ranges::max(errors);
  summary.median_error = median_of(errors);
  const auto tau = [](std::int64_t sum, std::size_t pairs) {
    return pairs > 0 ? static_cast<double>(sum) / static_cast<double>(pairs) : 0;
  };
  summary.tau = tau(agree, summary.pairs);
  summary.tau_within = tau(agree_within, summary.pairs_within);
  return summary;
}

std::string fidelity_table(const std::vector<FidelityCell>& cells) {
  std::string text =
      "model          input      batch workers granularity  measured   simulated  error   spread\n";
  for (const FidelityCell& cell : cells) {
    text += formatted("%-14s %-10s %-5lld %-7d %-12s ", cell.model.c_str(), cell.input.c_str(),
                      static_cast<long long>(cell.batch), cell.workers, cell.granularity.c_str());
    text += was_run(cell) ? formatted("%-10s %-10s %-7s %s\n", seconds_text(cell.step_s()).c_str(),
                                      seconds_text(cell.simulated).c_str(),
                                      percent_text(cell.error()).c_str(),
                                      percent_text(cell.spread()).c_str()) +
                                disturbed_line(cell)
                          : "not run: " + cell.not_run + "\n";
  }
  const FidelitySummary summary = summarise(cells);
  return text + formatted(
                    "%zu cells: median error %s, worst %s; Kendall's tau %.2f over %zu pairs, %.2f "
                    "over %zu pairs of one model and size\n",
                    summary.cells, percent_text(summary.median_error).c_str(),
                    percent_text(summary.worst_error).c_str(), summary.tau, summary.pairs,
                    summary.tau_within, summary.pairs_within);
}

std::string fidelity_reasons(const std::vector<FidelityCell>& cells) {
  constexpr double matters = 0.01;  // of a step's kernels
  std::string text;
  for (const FidelityCell& cell : cells) {
    if (cell.phases.empty()) continue;
    text +=
        formatted("%-14s %-7d %-12s", cell.model.c_str(), cell.workers, cell.granularity.c_str());
    const auto add = [&](const std::string& what, const FidelityCell::Pair& pair) {
      text +=
          formatted(" %s %.4g of %.4g,", what.c_str(), 1e3 * pair.simulated, 1e3 * pair.measured);
    };
    add("step", {cell.step_s(), cell.simulated});
    add("a worker's kernels", cell.kernels);
    add("submitting", cell.submission);
    text += " by phase:";
    double all = 0;
    for (const auto& [phase, seconds] : cell.phases) all += seconds.measured;
    for (const auto& [phase, seconds] : cell.phases)
      if (std::max(seconds.measured, seconds.simulated) > matters * all) add(phase, seconds);
    text.back() = '\n';
  }
  if (text.empty()) return text;
  return "model          workers granularity  simulated of measured milliseconds; phases of all "
         "workers together\n" +
         text;
}

std::string placement_table(const std::vector<FidelityCell>& cells) {
  std::string text =
      "granularity  placement  measured   spread  joules     simulated  joules     error\n";
  for (const FidelityCell& cell : cells) {
    text += formatted("%-12s %-10s ", cell.granularity.c_str(), cell.placement.c_str());
    text +=
        was_run(cell)
            ? formatted("%-10s %-7s %-10.4g %-10s %-10.4g %s\n",
                        seconds_text(cell.step_s()).c_str(), percent_text(cell.spread()).c_str(),
                        median_of(cell.measured_j), seconds_text(cell.simulated).c_str(),
                        cell.simulated_j, percent_text(cell.error()).c_str()) +
                  disturbed_line(cell)
            : "not run: " + cell.not_run + "\n";
  }
  return text;
}

std::string fidelity_csv(const std::vector<FidelityCell>& cells) {
  std::string text =
      "model,input,batch,workers,granularity,placement,round,measured_step_s,measured_j,"
      "simulated_step_s,simulated_j\n";
  for (const FidelityCell& cell : cells)
    for (std::size_t r = 0; r < cell.measured.size(); ++r)
      text += formatted("%s,%s,%lld,%d,%s,%s,%zu,%.9g,%.9g,%.9g,%.9g\n", cell.model.c_str(),
                        cell.input.c_str(), static_cast<long long>(cell.batch), cell.workers,
                        cell.granularity.c_str(), cell.placement.c_str(), r + 1, cell.measured[r],
                        r < cell.measured_j.size() ? cell.measured_j[r] : 0.0, cell.simulated,
                        cell.simulated_j);
  return text;
}

Json fidelity_json(const std::vector<FidelityCell>& cells) {
  Json rows = Json::array();
  for (const FidelityCell& cell : cells) {
    Json row{{"model", cell.model},
             {"input", cell.input},
             {"batch", cell.batch},
             {"workers", cell.workers},
             {"granularity", cell.granularity},
             {"placement", cell.placement}};
    if (was_run(cell)) {
      row["measured_step_s"] = cell.step_s();
      row["simulated_step_s"] = cell.simulated;
      row["error"] = cell.error();
      row["spread"] = cell.spread();
      row["simulated_j"] = cell.simulated_j;
      row["measured_j"] = median_of(cell.measured_j);
      row["rounds_s"] = cell.measured;
      const auto taken = mean_if_any(cell.taken);
      row["taken_by_others"] = taken ? Json(*taken) : Json();
      if (!cell.phases.empty()) {
        row["measured_kernels_s"] = cell.kernels.measured;
        row["simulated_kernels_s"] = cell.kernels.simulated;
        row["measured_submission_s"] = cell.submission.measured;
        row["simulated_submission_s"] = cell.submission.simulated;
        for (const auto& [phase, seconds] : cell.phases)
          row["phases"][phase] = {{"measured_s", seconds.measured},
                                  {"simulated_s", seconds.simulated}};
      }
    } else {
      row["not_run"] = cell.not_run;
    }
    rows.push_back(std::move(row));
  }
  const FidelitySummary summary = summarise(cells);
  return {{"cells", rows},
          {"median_error", summary.median_error},
          {"worst_error", summary.worst_error},
          {"kendall_tau", summary.tau},
          {"ordered_pairs", summary.pairs},
          {"kendall_tau_within_models", summary.tau_within},
          {"ordered_pairs_within_models", summary.pairs_within}};
}

}  // namespace regatta
