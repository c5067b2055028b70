#include "report/run_report.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "platform/disturbance.h"
#include "report/overlay.h"
#include "report/text.h"
#include "report/trace_page.h"
#include "report/warm_up.h"
#include "trace/bound.h"
#include "trace/loading.h"
#include "trace/store.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// --- curves ---

double batch_of(const Json& run) {
  return run.contains("recipe") ? run["recipe"].value("batch", 1.0) : 1.0;
}

// A number of every point, as a column of the page.
template <class Number>
std::vector<Number> column(const std::vector<trace::StepStretch>& points, auto member) {
  std::vector<Number> numbers;
  for (const trace::StepStretch& point : points)
    numbers.push_back(static_cast<Number>(std::invoke(member, point)));
  return numbers;
}

// As the run itself told when it ended. Of one that has not: images over time of the points given.
double throughput_of(const Json& run, std::span<const trace::StepStretch> points) {
  if (run.contains("speed")) return run["speed"].value("images_per_s", 0.0);
  double steps = 0, steps_per_rate = 0;
  for (const trace::StepStretch& point : points) {
    steps += static_cast<double>(point.steps);
    steps_per_rate += static_cast<double>(point.steps) / std::max(point.images_per_s, 1e-9);
  }
  return steps / steps_per_rate;
}

std::optional<double> taken_by_others(const Json& run) {
  const Json taken = run.value("speed", Json::object()).value("taken_by_others", Json());
  return taken.is_number() ? std::optional(taken.get<double>()) : std::nullopt;
}

// Adds how much of the last reported epoch waited for data, and why.
void add_loader(PageData& page, const Json& run, const RunCurves& curves) {
  if (curves.epochs.empty()) return;
  const Json& last = curves.epochs.back();
  const Json wait = last.value("data_wait", Json()), loading = last.value("loading", Json());
  if (!wait.is_number() || !loading.is_object()) return;
  const LoadingTimes times = trace::loading_times(loading);
  if (times.seconds() <= 0) return;
  const Json data = run.value("recipe", Json::object()).value("data", Json());
  const trace::LoadAdvice advice =
      trace::advice_on(times, data.is_string() ? data.get<std::string>() : "");
  page.json()["tiles"].push_back(tile("waited for data",
                                      formatted("%.1f", 100 * wait.get<double>()), "%",
                                      "of the last epoch; " + advice.what));
}

void add_curves(PageData& page, const Json& run, const RunCurves& curves) {
  const std::vector<trace::StepStretch>& points = curves.steps.points();
  const std::vector<double> rates = column<double>(points, &trace::StepStretch::images_per_s);
  page.add("step.number", column<std::uint32_t>(points, &trace::StepStretch::step));
  page.add("step.loss", column<float>(points, &trace::StepStretch::loss));
  page.add("step.loss_min", column<float>(points, &trace::StepStretch::loss_min));
  page.add("step.loss_max", column<float>(points, &trace::StepStretch::loss_max));
  page.add("step.learning_rate", column<float>(points, &trace::StepStretch::learning_rate));
  page.add("step.rate", std::vector<float>(rates.begin(), rates.end()));
  page.json()["epochs"] = curves.epochs;
  if (points.empty()) return;
  std::vector<double> durations;  // seconds: mean step of each point
  for (const double rate : rates) durations.push_back(batch_of(run) / std::max(rate, 1e-9));
  const WarmUp warm_up = find_warm_up(durations);
  // A point of a long run tells of several steps.
  const auto steps_before = [&](std::size_t point) {
    std::int64_t steps = 0;
    for (std::size_t i = 0; i < point; ++i) steps += points[i].steps;
    return steps;
  };
  double seconds = 0;
  for (std::size_t i = 0; i < warm_up.steps; ++i)
    seconds += static_cast<double>(points[i].steps) * durations[i];
  page.json()["warm_up"] = {{"course", course_name(warm_up.course)},
                            {"steps", steps_before(warm_up.steps)},
                            {"seconds", seconds},
                            {"steady_until", steps_before(warm_up.steady_until)}};
  Json& tiles = page.json()["tiles"];
  tiles.push_back(tile("throughput",
                       number_text(throughput_of(run, std::span(points).subspan(warm_up.steps))),
                       "images/s", "images over time after warm-up"));
  if (const Json energy = run.value("energy", Json()); energy.is_object())
    tiles.push_back(tile("energy",
                         energy["joules"].is_number() ? number_text(energy["joules"].get<double>())
                                                      : std::string("?"),
                         "J", energy["source"].get<std::string>() + ", of the whole run"));
  add_loader(page, run, curves);
  if (const auto taken = taken_by_others(run); !disturbed_text(taken).empty())
    tiles.push_back(tile("disturbed", formatted("%.0f", 100 * *taken), "%",
                         "of the workers' CPU time was taken by others"));
  if (!curves.epochs.empty() && curves.epochs.back().contains("test_accuracy")) {
    const Json& last = curves.epochs.back();
    const Json loss = last.value("test_loss", Json());
    tiles.push_back(
        tile("test accuracy", formatted("%.2f", 100 * last["test_accuracy"].get<double>()), "%",
             "after epoch " + last["epoch"].dump() +
                 (loss.is_number() ? formatted(", test loss %.4g", loss.get<double>()) : "")));
  }
  tiles.push_back(tile("loss", formatted("%.4g", points.back().loss), "",
                       "of step " + count_text(points.back().step)));
}

// --- facts ---

std::string fact_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Json facts_of(const Json& object) {
  Json rows = Json::array();
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    if (value.is_object())
      for (const auto& [inner, each] : value.items())
        rows.push_back({key + " " + inner, fact_text(each)});
    else if (value.is_array() && value.size() > 8)
      rows.push_back({key, std::to_string(value.size()) + " of them"});
    else
      rows.push_back({key, fact_text(value)});
  }
  return rows;
}

Json plan_facts(const Json& plan) {
  constexpr std::size_t most_groups = 12;  // a plan may have a thousand nodes
  Json rows = Json::array();
  std::size_t groups = 0;
  const Json nodes = plan.value("nodes", Json::array());
  for (const Json& node : nodes)
    for (const Json& group : node.value("groups", Json::array())) {
      if (++groups > most_groups) continue;
      const Json chunks = group.value("chunks", Json::array());
      rows.push_back({"group " + (nodes.size() > 1 ? node.value("name", "") + " · " : "") +
                          group.value("name", ""),
                      std::to_string(group.value("workers", 0)) + " workers, " +
                          (group.value("team", 1) > 1
                               ? "teams of " + std::to_string(group.value("team", 1)) + ", "
                               : "") +
                          std::to_string(chunks.size()) + " chunks: " + chunks.dump()});
    }
  if (groups > most_groups)
    rows.push_back({"further groups", std::to_string(groups - most_groups)});
  Json rest = plan;
  for (const char* key : {"nodes", "regatta_plan", "recipe"}) rest.erase(key);
  rest["segments"] = plan.value("segments", Json::array()).size();
  for (Json& row : facts_of(rest)) rows.push_back(std::move(row));
  return rows;
}

Json all_facts(const Json& run) {
  Json facts = Json::array();
  if (run.contains("recipe"))
    facts.push_back({{"name", "What was computed"}, {"rows", facts_of(run["recipe"])}});
  if (run.contains("plan"))
    facts.push_back({{"name", "When and where"}, {"rows", plan_facts(run["plan"])}});
  if (run.contains("machine"))
    facts.push_back({{"name", "Machine"}, {"rows", facts_of(run["machine"])}});
  return facts;
}

}  // namespace

void add_classes(PageData& page, const Json& tested) {
  constexpr std::size_t most = 100;  // as many rows and columns as a screen shows
  const Json classes = tested.value("per_class", Json::array());
  if (classes.empty() || classes.size() > most) return;
  page.json()["classes"] = {{"step", tested.value("step", 0)},
                            {"per_class", classes},
                            {"confusion", tested.value("confusion", Json())}};
}

RunCurves read_curves(const fs::path& folder) {
  RunCurves curves;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    if (json.contains("epoch"))
      curves.epochs.push_back(json);
    else if (const auto stretch = trace::stretch_of(json))
      curves.steps.add(*stretch);
  }
  return curves;
}

PageData run_page(const std::string& name, const Json& run, const RunCurves& curves,
                  const trace::Record* record, const trace::Analysis* analysis,
                  std::size_t most_tasks) {
  const Json recipe = run.value("recipe", Json::object());
  std::string title = recipe.value("model", name);
  if (recipe.contains("data")) title += " on " + fact_text(recipe["data"]);
  PageData page({{"kind", "run"},
                 {"title", title},
                 {"subtitle", name},
                 {"tiles", Json::array()},
                 {"tables", Json::array()},
                 {"facts", all_facts(run)}});
  add_curves(page, run, curves);
  if (record && analysis) {
    if (const auto bound = trace::bound_of(*record, *analysis))
      page.json()["tiles"].push_back(tile("verdict", std::string(trace::bound_name(bound->bound)),
                                          "", trace::shares_text(*bound)));
    add_trace(page, run, *record, *analysis, most_tasks);
  }
  return page;
}

namespace {

// `window_of` says which part of the record is meant.
template <class WindowOf>
std::vector<StepUse> write_part(const fs::path& folder, const fs::path& file,
                                const WindowOf& window_of) try {
  if (!fs::exists(folder / "run.json"))
    throw InputError("'" + folder.string() + "' is not the folder of a run: it has no run.json");
  const Json run = read_json(folder / "run.json");
  const RunCurves curves = read_curves(folder);
  const std::string name = fs::absolute(folder).lexically_normal().filename().string();
  const auto write_page = [&](PageData page) {
    if (fs::exists(folder / test_name)) add_classes(page, read_json(folder / test_name));
    write_file(file, page.html());
  };
  if (!fs::exists(folder / trace::store_name)) {
    write_page(run_page(name, run, curves, nullptr, nullptr));
    return {};
  }
  trace::Record record = trace::read_store(folder / trace::store_name);
  trace::Analysis analysis = trace::analyse(record, window_of(record));
  const std::vector<StepUse> uses = use_by_step(record, analysis);
  const std::vector<trace::Finding> advice = trace::diagnose(record, analysis);
  // What regatta compare left there.
  if (fs::exists(folder / simulated_store))
    overlay(record, analysis, trace::read_store(folder / simulated_store));
  PageData page = run_page(name, run, curves, &record, &analysis);
  add_advice(page, advice);
  write_page(std::move(page));
  return uses;
} catch (const Json::exception& error) {
  throw InputError("'" + folder.string() + "' has a run.json or " + std::string(test_name) +
                   " that does not tell a run: " + error.what());
}

}  // namespace

std::vector<StepUse> write_report(const fs::path& folder, const fs::path& file) {
  return write_part(folder, file, trace::whole_window);
}

void write_report(const fs::path& folder, const fs::path& file, std::int64_t first,
                  std::int64_t last) {
  write_part(folder, file, [&](const trace::Record& record) {
    return trace::window_of_steps(record, first, last);
  });
}

}  // namespace regatta
