#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <numeric>

#include "app/command.h"
#include "app/second_opinion.h"
#include "app/tracing.h"
#include "base/error.h"
#include "base/files.h"
#include "platform/disturbance.h"
#include "report/text.h"
#include "trace/analysis.h"
#include "trace/bound.h"
#include "trace/doctor.h"
#include "trace/energy.h"
#include "trace/import.h"
#include "trace/link_use.h"
#include "trace/loading.h"
#include "trace/merge.h"
#include "trace/store.h"
#include "trace/writers.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using namespace trace;

constexpr std::size_t most_helpful = 10;
constexpr std::size_t most_findings = 3;

// How a measured time stands to a predicted one.
std::string beside(double ratio) {
  // Measured and predicted steps may differ by this factor before one is called slow or fast.
  constexpr double much = 1.25;
  if (ratio > much) return formatted("%.1f times as long as it should", ratio);
  if (ratio < 1 / much) return "faster than predicted";
  return "as predicted";
}

Window chosen_window(const Record& record, const std::optional<std::string>& steps) {
  if (!steps) return whole_window(record);
  const StepRange range = parse_steps("--window", *steps);
  return window_of_steps(record, range.first, range.last);
}

Json causes_of(const std::array<Time, cause_count>& causes) {
  Json json = Json::object();
  for (std::size_t c = 0; c < cause_count; ++c)
    json[std::string(cause_name(static_cast<Cause>(c)))] = seconds(causes[c]);
  return json;
}

Json result_of(const fs::path& file, const Record& record, const Analysis& found) {
  Json workers = Json::array(), helpful = Json::array();
  for (std::size_t w = 0; w < found.workers.size(); ++w) {
    const WorkerUse& use = found.workers[w];
    workers.push_back({{"name", record.workers[w].name},
                       {"group", record.workers[w].group},
                       {"node", record.workers[w].node},
                       {"tasks", use.tasks},
                       {"busy_s", seconds(use.busy)},
                       {"idle_s", seconds(use.idle)},
                       {"overhead_s", seconds(use.overhead)},
                       {"idle_causes", causes_of(use.causes)}});
  }
  for (const KindUse& use : found.kinds) {
    if (helpful.size() == most_helpful) break;
    helpful.push_back({{"task", label(record.kinds[static_cast<std::size_t>(use.kind)])},
                       {"tasks", use.tasks},
                       {"busy_s", seconds(use.busy)},
                       {"critical_s", seconds(use.critical)},
                       {"blamed_s", seconds(use.blamed)},
                       {"gain_s", use.gain_s}});
  }
  Json links = Json::array();
  const std::vector<LinkUse> uses = use_of_links(record, found.window);
  for (std::size_t l = 0; l < uses.size(); ++l) {
    const Link& link = record.links[l];
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"bytes", link.bytes},
                     {"transfers", link.transfers}});
    if (!record.transfers.empty()) links.back()["busy_s"] = seconds(uses[l].busy);
  }
  const auto energy = energy_of(record.counters, found.window.first_step, found.window.last_step);
  return {{"trace", file.string()},
          {"first_step", found.window.first_step},
          {"last_step", found.window.last_step},
          {"wall_s", seconds(found.wall())},
          {"tasks", found.tasks},
          {"steps", found.steps},
          {"workers", workers},
          {"idle_causes", causes_of(found.causes)},
          {"critical_path_s", seconds(found.critical)},
          {"critical_path_tasks", found.critical_path.size()},
          {"work_s", seconds(found.work)},
          {"bound_s", seconds(found.bound)},
          {"efficiency", found.efficiency()},
          {"taken_by_others", found.taken_by_others ? Json(*found.taken_by_others) : Json()},
          {"imbalance", found.imbalance},
          {"helpful_tasks", helpful},
          {"links", links},
          {"clock_error_s", clock_error(record) ? Json(seconds(*clock_error(record))) : Json()},
          {"joules", energy ? Json(energy->joules) : Json()},
          {"joules_source", !energy            ? "unknown"
                            : energy->measured ? "measured"
                                               : "modelled"}};
}

double share(Time part, Time whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// A row for each worker; of more than a screen shows, the busiest and the idlest.
void print_workers(const Record& record, const Analysis& found) {
  constexpr std::size_t most_rows = 40, at_each_end = 8;
  const std::vector<std::string> lanes = lane_names(record);
  std::vector<std::size_t> order(found.workers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool folded = order.size() > most_rows;
  if (folded)
    std::ranges::stable_sort(order, std::greater{},
                             [&](std::size_t w) { return found.workers[w].busy; });
  // The middle dot between node and device is one column wide and two bytes long.
  const auto columns = [](const std::string& text) {
    return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
  };
  std::ptrdiff_t width = 16;
  for (const std::string& lane : lanes) width = std::max(width, columns(lane));
  const auto padded = [&](const std::string& text) {
    return text + std::string(static_cast<std::size_t>(width - columns(text)), ' ');
  };
  std::printf("%s %8s %8s %8s %9s\n", padded("worker").c_str(), "tasks", "busy", "idle",
              "overhead");
  const Time wall = found.wall();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (folded && i == at_each_end) {
      i = order.size() - at_each_end;
      std::printf("... %zu between the busiest and the idlest; --json FILE has all of them\n",
                  order.size() - 2 * at_each_end);
    }
    const WorkerUse& use = found.workers[order[i]];
    std::printf("%s %8lld %7.1f%% %7.1f%% %8.1f%%\n", padded(lanes[order[i]]).c_str(),
                static_cast<long long>(use.tasks), share(use.busy, wall), share(use.idle, wall),
                share(use.overhead, wall));
  }
}

// Where it is known when links carried something: those that did so most of the time.
void print_links(const Record& record, const Analysis& found) {
  constexpr std::size_t most_rows = 5;
  if (record.transfers.empty()) return;
  const std::vector<LinkUse> uses = use_of_links(record, found.window);
  std::vector<std::size_t> order(uses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t l) { return uses[l].busy; });
  std::printf("\nbusiest of %zu links (share of the time in which they carried something)\n",
              order.size());
  for (std::size_t i = 0; i < std::min(most_rows, order.size()); ++i)
    std::printf("%6.1f%%  %s (%.3g MB)\n", share(uses[order[i]].busy, found.wall()),
                link_name(record.links[order[i]]).c_str(),
                static_cast<double>(uses[order[i]].bytes) / 1e6);
}

void print_report(const Record& record, const Analysis& found) {
  const Time wall = found.wall();
  if (found.window.last_step > 0)
    std::printf("steps %lld to %lld: ", static_cast<long long>(found.window.first_step),
                static_cast<long long>(found.window.last_step));
  std::printf("%lld tasks in %.6f s\n\n", static_cast<long long>(found.tasks), seconds(wall));
  print_workers(record, found);
  if (const std::string text = clock_text(record); !text.empty()) std::printf("%s\n", text.c_str());
  const Time all = wall * static_cast<Time>(worker_count(record));
  std::printf("\nwhy workers slept (share of all their time)\n");
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < cause_count; ++c)
    if (found.causes[c] > 0) order.push_back(c);
  std::ranges::sort(order, std::greater{}, [&](std::size_t c) { return found.causes[c]; });
  for (const std::size_t c : order)
    std::printf("%6.1f%%  %-14s %s\n", share(found.causes[c], all),
                cause_name(static_cast<Cause>(c)).data(), cause_text(static_cast<Cause>(c)).data());
  if (order.empty()) std::printf("        they did not\n");
  print_links(record, found);
  std::printf(
      "\ncritical path %.6f s (%.1f%%, %zu tasks); best possible with these tasks %.6f s: the run "
      "is at %.1f%% of it\nimbalance %.1f%%\n",
      seconds(found.critical), share(found.critical, wall), found.critical_path.size(),
      seconds(found.bound), 100 * found.efficiency(), 100 * found.imbalance);
  if (const std::string text = disturbed_text(found.taken_by_others); !text.empty())
    std::printf("%s\n", text.c_str());
  std::printf("\ntasks whose change would help most (wall time saved if they took none)\n");
  for (std::size_t i = 0; i < std::min(most_helpful, found.kinds.size()); ++i) {
    const KindUse& use = found.kinds[i];
    const double part = wall > 0 ? 100 * use.gain_s / seconds(wall) : 0;
    std::printf("%6.1f%%  %s (%lld times)\n", part,
                label(record.kinds[static_cast<std::size_t>(use.kind)]).c_str(),
                static_cast<long long>(use.tasks));
  }
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      width[c] = std::min<std::size_t>(60, std::max(width[c], row[c].size()));
  for (const auto& row : rows) {
    std::string text;
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += row[c];
      if (c + 1 < row.size())
        text += std::string(width[c] > row[c].size() ? width[c] - row[c].size() : 0, ' ') + "  ";
    }
    std::cout << text << "\n";
  }
}

Json rows_of(const std::vector<std::vector<std::string>>& table) {
  Json rows = Json::array();
  for (std::size_t r = 1; r < table.size(); ++r) {
    Json row = Json::object();
    for (std::size_t c = 0; c < table[r].size(); ++c) row[table[0][c]] = table[r][c];
    rows.push_back(row);
  }
  return rows;
}

struct Format {
  const char* name;
  const char* file;
  void (*write)(std::ostream&, const Record&);
};
constexpr std::array formats{Format{"perfetto", "trace.json", write_perfetto},
                             Format{"paje", "trace.paje", write_paje},
                             Format{"csv", "trace.csv", write_csv}};

// Only what touches the window, so that a viewer shows no more.
Record cut(const Record& record, const Window& window) {
  Record part = record;
  std::erase_if(part.tasks, [&](const trace::Task& task) {
    return task.end <= window.start || task.start >= window.end;
  });
  std::erase_if(part.operators, [&](const Operator& each) {
    return each.end <= window.start || each.start >= window.end;
  });
  std::erase_if(part.transfers, [&](const Transfer& each) {
    return each.end <= window.start || each.start >= window.end;
  });
  std::erase_if(part.counters, [&](const Counter& each) {
    return each.time < window.start || each.time > window.end;
  });
  std::erase_if(part.marks, [&](const Mark& each) {
    return each.time < window.start || each.time > window.end;
  });
  return part;
}

fs::path export_to(const Format& format, const Record& record, const fs::path& store,
                   const std::optional<std::string>& out) {
  fs::path file = out ? fs::path(*out) : store.parent_path() / format.file;
  write_file(file, [&](std::ostream& stream) { format.write(stream, record); });
  return file;
}

// The store that an import makes.
fs::path import_into_store(const std::string& from, const std::optional<std::string>& out) {
  fs::path file = out ? fs::path(*out) : fs::path(from + ".sqlite");
  std::error_code code;
  if (fs::equivalent(file, from, code))
    throw InputError("--out '" + file.string() + "' is the trace itself: choose another name");
  Record record = import_trace(from);
  fill_ready(record);
  write_store(file, record);
  write_analysis(file, record);
  return file;
}

}  // namespace

int run_trace(std::span<const char* const> arguments) {
  CLI::App app(
      "Where the time of a recorded run went, and why workers slept. RUN is the folder of a run\n"
      "made with regatta train --trace, or a trace.sqlite.",
      "regatta trace");
  std::string run;
  std::optional<std::string> window, sql, to, out, import, json_file;
  app.add_option("run", run, "run folder or trace.sqlite")->type_name("RUN");
  app.add_option("--window", window, "only the steps A to B")->type_name("A:B");
  app.add_option("--sql", sql, "ask the store: tables and views are in docs/trace.md")
      ->type_name("SELECT");
  app.add_option("--to", to, "write it for a viewer: perfetto, paje or csv")
      ->check(CLI::IsMember({"perfetto", "paje", "csv"}));
  app.add_option("--import", import,
                 "make a store of StarPU's paje.trace or of nvprof's or Nsight Systems' SQLite")
      ->type_name("FILE");
  app.add_option("--out", out, "what to write with --to or --import")->type_name("FILE");
  add_json_flag(app, json_file);
  app.footer("Example:\n  regatta trace runs/tiny --window 15:20 --to perfetto");
  if (!parse(app, arguments)) return 0;
  if (json_file) require_writable(*json_file);

  if (run.empty() == !import) throw InputError("give either a RUN or --import FILE");
  if (out && !to && !import) throw InputError("--out goes with --to or --import");
  const fs::path store =
      import ? import_into_store(*import, to ? std::nullopt : out) : store_of(run);
  if (import) std::cerr << "imported to " << store.string() << "\n";
  if (sql) {
    const auto table = query(store, *sql);
    write_json_result(json_file, {{"rows", rows_of(table)}});
    print_table(table);
    return 0;
  }
  const Record record = read_store(store);
  const Window chosen = chosen_window(record, window);
  if (to) {
    const auto format =
        std::ranges::find(formats, *to, [](const Format& each) { return std::string(each.name); });
    const fs::path file = export_to(*format, window ? cut(record, chosen) : record, store, out);
    write_json_result(json_file, {{"file", file.string()}, {"tasks", record.tasks.size()}});
    std::cout << "wrote " << file.string() << "\n";
    return 0;
  }
  const Analysis found = analyse(record, chosen);
  write_json_result(json_file, result_of(store, record, found));
  print_report(record, found);
  return 0;
}

int run_doctor(std::span<const char* const> arguments) {
  CLI::App app(
      "Whether a run was as fast as it should be here, and the three things that stand most in "
      "the\n"
      "way of a faster one: plans that are predicted or simulated to be faster, what each fix "
      "could\n"
      "gain at best, and the flag that tries it.",
      "regatta doctor");
  std::string run;
  std::optional<std::string> window, json_file;
  app.add_option("run", run, "run folder or trace.sqlite")->type_name("RUN")->required();
  app.add_option("--window", window, "only the steps A to B")->type_name("A:B");
  add_json_flag(app, json_file);
  app.footer("Example:\n  regatta doctor runs/tiny");
  if (!parse(app, arguments)) return 0;
  if (json_file) require_writable(*json_file);

  const Record record = read_store(store_of(run));
  const Analysis found = analyse(record, chosen_window(record, window));
  const std::vector<Finding> seen = diagnose(record, found);
  if (seen.empty()) throw InputError("'" + run + "' has no tasks to judge");
  const double step_s =
      seconds(found.wall()) / static_cast<double>(std::max<std::int64_t>(found.steps, 1));
  const SecondOpinion opinion = second_opinion(run, seconds(found.wall()));
  // A plan that was played or simulated comes before what a fix could gain at best.
  std::vector<Finding> findings = opinion.findings;
  findings.insert(findings.end(), seen.begin(), seen.end());
  if (findings.size() > most_findings) findings.resize(most_findings);
  Json list = Json::array();
  std::printf("%lld tasks in %.6f s, %.1f%% of the best possible speed with these tasks\n",
              static_cast<long long>(found.tasks), seconds(found.wall()), 100 * found.efficiency());
  if (opinion.predicted_step_s)
    std::printf("a step took %s; by the profile of this machine this plan takes %s: %s\n",
                seconds_text(step_s).c_str(), seconds_text(*opinion.predicted_step_s).c_str(),
                beside(step_s / *opinion.predicted_step_s).c_str());
  if (const std::string text = disturbed_text(found.taken_by_others); !text.empty())
    std::printf("%s\n", text.c_str());
  if (const std::string text = clock_text(record); !text.empty()) std::printf("%s\n", text.c_str());
  const auto bound = bound_of(record, found);
  if (bound) std::printf("%s\n", text_of(*bound).c_str());
  const auto loading = loading_in(record, found.window);
  std::printf("%s\n", loader_text(loading, seconds(found.wall()), data_of(record)).c_str());
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& each = findings[i];
    const bool predicted = i < opinion.findings.size();
    list.push_back({{"finding", each.what},
                    {"fix", each.fix},
                    {"flag", each.flag},
                    {"gain_s", each.gain_s},
                    {"gain", each.gain},
                    {"predicted", predicted}});
    std::printf("\n%zu. %s\n   %s\n   gains %s%.1f%% of the time; try %s\n", i + 1,
                each.what.c_str(), each.fix.c_str(), predicted ? "" : "at most ", 100 * each.gain,
                each.flag.c_str());
  }
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  write_json_result(json_file,
                    {{"efficiency", found.efficiency()},
                     {"step_s", step_s},
                     {"predicted_step_s", or_null(opinion.predicted_step_s)},
                     {"taken_by_others", or_null(found.taken_by_others)},
                     {"bound", bound ? to_json(*bound) : Json()},
                     {"loader", loader_json(loading, seconds(found.wall()), data_of(record))},
                     {"findings", list}});
  return 0;
}

}  // namespace regatta::app
