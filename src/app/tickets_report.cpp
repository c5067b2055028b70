// `tickets report`: what a search found.
#include <iostream>
#include <memory>

#include "app/command.h"
#include "app/tickets_command.h"
#include "base/error.h"
#include "base/files.h"
#include "base/shell_word.h"
#include "report/page.h"
#include "report/text.h"
#include "tickets/estimate.h"
#include "tickets/results.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using namespace tickets;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

PageData page_of(const Results& results, const Search& search) {
  double joules = 0, seconds = 0;
  std::size_t tickets = 0;
  bool measured = true;
  for (const ResultRow& row : results.rows) {
    if (row.job.kind != JobKind::ticket) continue;
    ++tickets;
    seconds += row.seconds;
    joules += row.joules.value_or(0);
    measured &= row.joules_measured;
  }
  const double each = tickets > 0 ? static_cast<double>(tickets) : 1;
  Json tiles = Json::array();
  tiles.push_back(tile("jobs done", std::to_string(results.rows.size()), "",
                       "of " + std::to_string(results.jobs)));
  if (const Cell* dense = results.find(JobKind::dense, 0, 0))
    tiles.push_back(tile("dense network", formatted("%.2f", 100 * dense->mean), "%",
                         "test accuracy, mean over seeds"));
  tiles.push_back(tile("time a ticket", time_text(Seconds(seconds / each)), "", "on its worker"));
  tiles.push_back(tile("energy a ticket", number_text(joules / each), "J",
                       measured ? "measured" : "estimate from watts"));
  if (results.scaling.span_s > 0)
    tiles.push_back(tile("all jobs", time_text(Seconds(results.scaling.span_s)), "",
                         "first claim to last result"));
  Json json = to_json(results, search);
  json["kind"] = "tickets";
  json["title"] = "Lottery tickets";
  json["subtitle"] = joined(search.train);
  json["tiles"] = tiles;
  Json facts = Json::array();
  const auto fact = [&](const char* name, const std::string& value) {
    facts.push_back({name, value});
  };
  fact("pruning", std::string(search.iterative ? "iterative" : "one shot") + ", by " +
                      std::string(criterion_name(search.by)) + ", " +
                      std::string(scope_name(search.scope)));
  fact("a level removes", percent_text(search.rate));
  fact("steps of a run", count_text(search.last_step));
  fact("images a step", count_text(search.samples_per_step));
  json["facts"] = Json::array({Json{{"name", "Search"}, {"rows", facts}}});
  return PageData(json);
}

}  // namespace

std::function<int()> declare_tickets_report(CLI::App& app) {
  struct Flags {
    std::string folder;
    std::optional<std::string> out, csv, json_file;
  };
  const auto flags = std::make_shared<Flags>();
  app.add_option("folder", flags->folder, "the search, finished or not")
      ->required()
      ->type_name("DIR");
  app.add_option("--out", flags->out, "the page (default: DIR/report.html)")->type_name("FILE");
  app.add_option("--csv", flags->csv, "a line for every job (default: DIR/results.csv)")
      ->type_name("FILE");
  add_json_flag(app, flags->json_file);
  app.footer("Example:\n  regatta tickets report searches/lenet5");
  return [flags] {
    DiskLayer files;
    SearchFolder folder(files, flags->folder);
    folder.refresh();
    const Results results = results_of(folder);
    if (results.rows.empty())
      throw InputError("'" + flags->folder + "' has no finished job yet; regatta tickets status " +
                       shell_word(flags->folder) + " shows who works on it");
    const fs::path page = flags->out ? fs::path(*flags->out) : folder.path() / "report.html";
    const fs::path csv = flags->csv ? fs::path(*flags->csv) : folder.path() / "results.csv";
    std::cout << results_table(results, folder.search());
    if (!report_page.empty()) write_file(page, page_of(results, folder.search()).html());
    write_file(csv, results_csv(results));
    write_json_result(flags->json_file, to_json(results, folder.search()));
    if (!report_page.empty()) std::cout << page.string() << "\n";
    std::cout << csv.string() << "\n";
    return 0;
  };
}

}  // namespace regatta::app
