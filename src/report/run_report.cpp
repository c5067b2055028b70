#include "report/run_report.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "report/overlay.h"
#include "report/statistics.h"
#include "report/text.h"
#include "report/trace_page.h"
#include "report/warm_up.h"
#include "trace/store.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// --- curves ---

double batch_of(const Json& run) {
  return run.contains("recipe") ? run["recipe"].value("batch", 1.0) : 1.0;
}

WarmUp warm_up_of(const RunCurves& curves, double batch) {
  std::vector<double> durations;
  for (const double rate : curves.images_per_s) durations.push_back(batch / std::max(rate, 1e-9));
  return find_warm_up(durations);
}

void add_curves(PageData& page, const Json& run, const RunCurves& curves) {
  page.add("step.number", curves.steps);
  page.add("step.loss", curves.losses);
  page.add("step.learning_rate", curves.learning_rates);
  page.add("step.rate", std::vector<float>(curves.images_per_s.begin(), curves.images_per_s.end()));
  page.json()["epochs"] = curves.epochs;
  if (curves.images_per_s.empty()) return;
  const WarmUp warm_up = warm_up_of(curves, batch_of(run));
  page.json()["warm_up"] = {{"course", course_name(warm_up.course)},
                            {"steps", warm_up.steps},
                            {"seconds", warm_up.seconds},
                            {"steady_until", warm_up.steady_until}};
  const std::vector<double> steady(
      curves.images_per_s.begin() + static_cast<std::ptrdiff_t>(warm_up.steps),
      curves.images_per_s.end());
  Json& tiles = page.json()["tiles"];
  tiles.push_back(tile("throughput", number_text(median_of(steady)), "images/s",
                       "median after " + std::to_string(warm_up.steps) + " warm-up steps"));
  if (!curves.epochs.empty() && curves.epochs.back().contains("test_accuracy")) {
    const Json& last = curves.epochs.back();
    const Json loss = last.value("test_loss", Json());
    tiles.push_back(
        tile("test accuracy", formatted("%.2f", 100 * last["test_accuracy"].get<double>()), "%",
             "after epoch " + last["epoch"].dump() +
                 (loss.is_number() ? formatted(", test loss %.4g", loss.get<double>()) : "")));
  }
  tiles.push_back(tile("loss", formatted("%.4g", static_cast<double>(curves.losses.back())), "",
                       "of step " + count_text(curves.steps.back())));
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

RunCurves read_curves(const fs::path& folder) {
  RunCurves curves;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    if (json.contains("epoch")) {
      curves.epochs.push_back(json);
    } else if (json.contains("step") && json.contains("loss") && json.contains("images_per_s")) {
      if (!json["loss"].is_number() || !json["images_per_s"].is_number()) continue;
      curves.steps.push_back(json["step"].get<std::uint32_t>());
      curves.losses.push_back(json["loss"].get<float>());
      curves.images_per_s.push_back(json["images_per_s"].get<double>());
      const Json rate = json.value("lr", Json());
      curves.learning_rates.push_back(rate.is_number() ? rate.get<float>()
                                                       : std::numeric_limits<float>::quiet_NaN());
    }
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
  if (record && analysis) add_trace(page, run, *record, *analysis, most_tasks);
  return page;
}

namespace {

// `window_of` says which part of the record is meant.
template <class WindowOf>
std::vector<StepUse> write_part(const fs::path& folder, const fs::path& file,
                                const WindowOf& window_of) {
  if (!fs::exists(folder / "run.json"))
    throw InputError("'" + folder.string() + "' is not the folder of a run: it has no run.json");
  const Json run = read_json(folder / "run.json");
  const RunCurves curves = read_curves(folder);
  const std::string name = fs::absolute(folder).lexically_normal().filename().string();
  if (!fs::exists(folder / trace::store_name)) {
    write_file(file, run_page(name, run, curves, nullptr, nullptr).html());
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
  write_file(file, page.html());
  return uses;
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
