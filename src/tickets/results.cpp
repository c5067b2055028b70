#include "tickets/results.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>
#include <tuple>

#include "base/error.h"

namespace regatta::tickets {
namespace {

std::optional<double> number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

ResultRow row_of(const Job& job, const LogEntry& result) {
  const Json& body = result.body;
  if (!body.contains("outcome") || !body["outcome"].is_object())
    throw InputError("the result of job '" + job.id + "' has no outcome");
  const Json& outcome = body["outcome"];
  ResultRow row;
  row.job = job;
  row.density = number_in(outcome, "density").value_or(1);
  row.test_accuracy = number_in(outcome, "test_accuracy");
  row.test_loss = number_in(outcome, "test_loss");
  row.train_loss = number_in(outcome, "train_loss").value_or(0);
  row.seconds = body.value("seconds", 0.0);
  row.images_per_s = body.value("images_per_s", 0.0);
  row.joules = number_in(body, "joules");
  row.joules_measured = body.value("joules_measured", false);
  row.worker = result.worker;
  row.machine = body.value("machine", "");
  if (const auto layers = outcome.find("layers"); layers != outcome.end())
    for (const Json& layer : *layers)
      row.layers.push_back(
          {layer.at("name"), layer.at("kept").get<double>() / layer.at("weights").get<double>()});
  return row;
}

double time_of(const LogEntry& entry) { return entry.body.value("at", 0.0); }

void add_spans(const Job& job, const JobState& state, std::vector<WorkSpan>& spans) {
  for (std::size_t i = 0; i + 1 < state.entries.size(); ++i) {
    const LogEntry& claim = state.entries[i];
    const LogEntry& next = state.entries[i + 1];
    if (claim.kind != EntryKind::claim) continue;
    spans.push_back({claim.worker, claim.body.value("machine", ""), job.id, time_of(claim),
                     time_of(next), next.kind == EntryKind::result});
  }
}

// Spans of jobs that are under way: from their claim to the latest time in any log.
std::vector<WorkSpan> spans_under_way(const SearchFolder& folder) {
  double known = 0;
  for (std::size_t i = 0; i < folder.jobs().size(); ++i)
    for (const LogEntry& entry : folder.state(i).entries) known = std::max(known, time_of(entry));
  std::vector<WorkSpan> spans;
  for (std::size_t i = 0; i < folder.jobs().size(); ++i) {
    const JobState& state = folder.state(i);
    if (!state.claimed()) continue;
    const LogEntry& claim = state.last();
    spans.push_back({claim.worker, claim.body.value("machine", ""), folder.jobs()[i].id,
                     time_of(claim), known, false});
  }
  return spans;
}

std::vector<Cell> cells_of(const std::vector<ResultRow>& rows) {
  std::map<std::tuple<JobKind, std::int64_t, int>, std::vector<const ResultRow*>> groups;
  for (const ResultRow& row : rows)
    if (row.test_accuracy)
      groups[{row.job.kind, row.job.kind == JobKind::dense ? 0 : row.job.reset, row.job.level}]
          .push_back(&row);
  std::vector<Cell> cells;
  for (const auto& [key, members] : groups) {
    Cell cell{std::get<0>(key), std::get<1>(key), std::get<2>(key)};
    cell.low = std::numeric_limits<double>::infinity();
    cell.high = -cell.low;
    cell.density = 0;
    for (const ResultRow* row : members) {
      ++cell.seeds;
      cell.mean += *row->test_accuracy;
      cell.density += row->density;
      cell.low = std::min(cell.low, *row->test_accuracy);
      cell.high = std::max(cell.high, *row->test_accuracy);
    }
    cell.mean /= cell.seeds;
    cell.density /= cell.seeds;
    cells.push_back(cell);
  }
  return cells;
}

// A mask with new weights starts at step 0; which reset point's ticket it belongs to is in its
// name.
std::int64_t branch_of(const Job& job) {
  const std::size_t at = job.id.find("-reset");
  return at == std::string::npos ? job.reset : std::stoll(job.id.substr(at + 6));
}

Win win_over(const Results& results, std::int64_t reset, JobKind control, int levels) {
  Win win{reset, control, std::nullopt};
  for (int level = levels; level >= 1; --level) {
    const Cell* ticket = results.find(JobKind::ticket, reset, level);
    const Cell* other = results.find(control, reset, level);
    if (!ticket || !other) break;
    if (level == levels) {
      win.margin = ticket->mean - other->mean;
      win.spread = std::max(ticket->high - ticket->low, other->high - other->low);
    }
    if (ticket->low <= other->high) break;
    win.level = level;
  }
  return win;
}

// How many jobs the worker of `span` did at a time while it lasted, on average, with its own.
double side_by_side(const WorkSpan& span, const std::vector<WorkSpan>& spans) {
  if (span.end <= span.begin) return 1;
  double together = 0;
  for (const WorkSpan& other : spans)
    if (other.worker == span.worker)
      together += std::max(0.0, std::min(span.end, other.end) - std::max(span.begin, other.begin));
  return together / (span.end - span.begin);
}

// How long in all no worker had a job, counting pauses that are longer than `least`.
double pauses_of(std::vector<WorkSpan> spans, double least) {
  std::ranges::sort(spans, {}, &WorkSpan::begin);
  double pauses = 0, reached = spans.empty() ? 0 : spans.front().begin;
  for (const WorkSpan& span : spans) {
    if (span.begin - reached > least) pauses += span.begin - reached;
    reached = std::max(reached, span.end);
  }
  return pauses;
}

// Maps each worker to the first worker of its chain of restarts. A worker counts as the restart of
// one on the same machine that had ended before it began.
std::map<std::string, std::string> first_lives(const std::vector<WorkSpan>& spans) {
  struct Lifetime {
    std::string worker, machine;
    double begin = 0, end = 0;
  };
  std::map<std::string, Lifetime> lifetimes;
  for (const WorkSpan& span : spans) {
    Lifetime& lifetime =
        lifetimes.try_emplace(span.worker, span.worker, span.machine, span.begin, span.end)
            .first->second;
    lifetime.begin = std::min(lifetime.begin, span.begin);
    lifetime.end = std::max(lifetime.end, span.end);
  }
  std::vector<Lifetime> in_order;
  for (const auto& [worker, lifetime] : lifetimes) in_order.push_back(lifetime);
  std::ranges::stable_sort(in_order, {}, &Lifetime::begin);
  std::vector<Lifetime> first;  // first workers, each with the end of its latest restart
  std::map<std::string, std::string> first_of;
  for (const Lifetime& lifetime : in_order) {
    const auto before = std::ranges::find_if(first, [&](const Lifetime& each) {
      return each.machine == lifetime.machine && each.end <= lifetime.begin;
    });
    first_of[lifetime.worker] = before == first.end() ? lifetime.worker : before->worker;
    if (before == first.end())
      first.push_back(lifetime);
    else
      before->end = lifetime.end;
  }
  return first_of;
}

Scaling scaling_of(const SearchFolder& folder, const Results& results) {
  Scaling scaling;
  double fastest = 0, begin = std::numeric_limits<double>::infinity(), end = 0, images = 0;
  std::map<std::string, double> at_a_time;  // by job: how many its worker did side by side
  std::vector<WorkSpan> all_spans = spans_under_way(folder);
  all_spans.insert(all_spans.end(), results.spans.begin(), results.spans.end());
  for (const WorkSpan& span : all_spans) {
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
    if (span.finished) at_a_time[span.job] = side_by_side(span, results.spans);
  }
  const std::map<std::string, std::string> first_of = first_lives(results.spans);
  std::map<std::string, double> speeds;  // by worker: images/s of all its jobs together
  for (const ResultRow& row : results.rows) {
    images += static_cast<double>(row.job.steps * folder.search().samples_per_step);
    if (row.images_per_s <= 0) continue;
    double& speed = speeds[first_of.at(row.worker)];
    const auto found = at_a_time.find(row.job.id);
    speed = std::max(speed, row.images_per_s * (found == at_a_time.end() ? 1 : found->second));
    fastest = std::max(fastest, speed);
  }
  scaling.workers = speeds.size();
  if (fastest <= 0 || end <= begin) return scaling;
  scaling.work_s = images / fastest;
  scaling.pauses_s = pauses_of(std::move(all_spans), folder.search().lease.count());
  scaling.span_s = end - begin - scaling.pauses_s;
  scaling.speed_up = scaling.work_s / scaling.span_s;
  for (const auto& [worker, speed] : speeds) scaling.ideal += speed / fastest;
  scaling.of_ideal = scaling.speed_up / scaling.ideal;
  const std::vector<JobWork> works = works_of(folder.search());
  double all = 0;
  for (const JobWork& work : works) all += work.work;
  scaling.chain_share = std::ranges::max(longest_chains(works)) / all;
  const int most = std::max(8, static_cast<int>(scaling.workers));
  for (int workers = 1; workers <= most; ++workers) {
    const std::vector<WorkerSpeed> equal(static_cast<std::size_t>(workers));
    scaling.curve.push_back({workers, all / end_of(schedule(works, equal)).count(),
                             1 / (scaling.chain_share + (1 - scaling.chain_share) / workers)});
  }
  return scaling;
}

std::string reset_text(std::int64_t step, const Search& search) {
  if (step > 0 && step % search.steps_per_epoch == 0)
    return std::to_string(step / search.steps_per_epoch) + "e";
  return std::to_string(step);
}

std::string cell_text(const Cell* cell) {
  char text[64] = "";
  if (cell)
    std::snprintf(text, sizeof text, "%.2f (%.2f-%.2f)", 100 * cell->mean, 100 * cell->low,
                  100 * cell->high);
  return text;
}

Json to_json(const Cell& cell, const Search& search) {
  return {{"kind", kind_name(cell.kind)},
          {"reset", cell.reset},
          {"reset_text", reset_text(cell.reset, search)},
          {"level", cell.level},
          {"density", cell.density},
          {"seeds", cell.seeds},
          {"mean", cell.mean},
          {"low", cell.low},
          {"high", cell.high}};
}

Json to_json(const ResultRow& row) {
  Json layers = Json::array();
  for (const ResultRow::Layer& layer : row.layers)
    layers.push_back({{"name", layer.name}, {"density", layer.density}});
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  return {{"id", row.job.id},
          {"kind", kind_name(row.job.kind)},
          {"seed", row.job.seed},
          {"reset", row.job.reset},
          {"level", row.job.level},
          {"density", row.density},
          {"test_accuracy", or_null(row.test_accuracy)},
          {"test_loss", or_null(row.test_loss)},
          {"train_loss", row.train_loss},
          {"seconds", row.seconds},
          {"images_per_s", row.images_per_s},
          {"joules", or_null(row.joules)},
          {"joules_measured", row.joules_measured},
          {"worker", row.worker},
          {"machine", row.machine},
          {"layers", layers}};
}

Json to_json(const Scaling& scaling) {
  Json curve = Json::array();
  for (const Scaling::Point& point : scaling.curve)
    curve.push_back(
        {{"workers", point.workers}, {"planned", point.planned}, {"amdahl", point.amdahl}});
  return {{"workers", scaling.workers},
          {"work_s", scaling.work_s},
          {"span_s", scaling.span_s},
          {"pauses_s", scaling.pauses_s},
          {"speed_up", scaling.speed_up},
          {"ideal", scaling.ideal},
          {"of_ideal", scaling.of_ideal},
          {"chain_share", scaling.chain_share},
          {"curve", curve}};
}

}  // namespace

const Cell* Results::find(JobKind kind, std::int64_t reset, int level) const {
  for (const Cell& cell : cells)
    if (cell.kind == kind && cell.reset == reset && cell.level == level) return &cell;
  return nullptr;
}

Results results_of(const SearchFolder& folder) {
  Results results;
  results.jobs = folder.jobs().size();
  std::set<JobKind> controls;
  std::set<int> shared_levels;  // whose mask with new weights belongs to all reset points
  for (std::size_t i = 0; i < folder.jobs().size(); ++i) {
    Job job = folder.jobs()[i];
    add_spans(job, folder.state(i), results.spans);
    if (!folder.state(i).done()) continue;
    job.reset = branch_of(job);  // so that controls stand beside their tickets
    if (job.kind == JobKind::fresh || job.kind == JobKind::random) controls.insert(job.kind);
    results.rows.push_back(row_of(job, folder.state(i).last()));
    if (job.kind == JobKind::fresh && job.id.find("-reset") == std::string::npos) {
      results.rows.back().job.reset = folder.search().resets.front();
      shared_levels.insert(job.level);
    }
  }
  results.cells = cells_of(results.rows);
  const std::vector<Cell> found = results.cells;
  for (const Cell& cell : found)
    for (const std::int64_t reset : folder.search().resets)
      if (cell.kind == JobKind::fresh && shared_levels.contains(cell.level) &&
          reset != cell.reset) {
        results.cells.push_back(cell);
        results.cells.back().reset = reset;
      }
  for (const std::int64_t reset : folder.search().resets)
    for (const JobKind control : controls)
      results.wins.push_back(win_over(results, reset, control, folder.search().levels));
  results.scaling = scaling_of(folder, results);
  return results;
}

std::string results_table(const Results& results, const Search& search) {
  char line[256];
  std::string text = "test accuracy in percent: mean over seeds (least-largest)\n";
  if (const Cell* dense = results.find(JobKind::dense, 0, 0))
    text += "dense network: " + cell_text(dense) + "\n";
  for (const std::int64_t reset : search.resets) {
    text += "\nreset to " + reset_text(reset, search) + "\n";
    std::snprintf(line, sizeof line, "%5s %9s  %-22s %-22s %-22s\n", "level", "left", "ticket",
                  "fresh weights", "random mask");
    text += line;
    for (int level = 1; level <= search.levels; ++level) {
      const Cell* ticket = results.find(JobKind::ticket, reset, level);
      const Cell* fresh = results.find(JobKind::fresh, reset, level);
      const Cell* random = results.find(JobKind::random, reset, level);
      const Cell* any = ticket ? ticket : fresh ? fresh : random;
      if (!any) continue;
      std::snprintf(line, sizeof line, "%5d %8.2f%%  %-22s %-22s %-22s\n", level,
                    100 * any->density, cell_text(ticket).c_str(), cell_text(fresh).c_str(),
                    cell_text(random).c_str());
      text += line;
    }
  }
  text += "\n";
  for (const Win& win : results.wins) {
    std::snprintf(
        line, sizeof line,
        "reset to %s, tickets against %s: %s; at the last level %+.2f points, spread over "
        "seeds %.2f\n",
        reset_text(win.reset, search).c_str(),
        win.over == JobKind::fresh ? "fresh weights" : "random masks",
        win.level ? ("they win from level " + std::to_string(*win.level) + " on").c_str()
                  : "no level from which on all win",
        100 * win.margin, 100 * win.spread);
    text += line;
  }
  const Scaling& scaling = results.scaling;
  if (scaling.span_s > 0) {
    std::snprintf(
        line, sizeof line,
        "%zu of %zu jobs done by %zu worker%s in %.0f s: speed-up %.2f of %.2f (%.0f%% of "
        "the heterogeneous ideal)\n",
        results.rows.size(), results.jobs, scaling.workers, scaling.workers == 1 ? "" : "s",
        scaling.span_s, scaling.speed_up, scaling.ideal, 100 * scaling.of_ideal);
    text += line;
  }
  return text;
}

std::string results_csv(const Results& results) {
  std::string text =
      "id,kind,seed,reset,level,density,test_accuracy,test_loss,train_loss,seconds,images_per_s,"
      "joules,joules_measured,worker,machine\n";
  char line[256];
  const auto or_empty = [](const std::optional<double>& value) {
    char number[32] = "";
    if (value) std::snprintf(number, sizeof number, "%.9g", *value);
    return std::string(number);
  };
  for (const ResultRow& row : results.rows) {
    std::snprintf(line, sizeof line, ",%s,%llu,%lld,%d,%.9g,",
                  std::string(kind_name(row.job.kind)).c_str(),
                  static_cast<unsigned long long>(row.job.seed),
                  static_cast<long long>(row.job.reset), row.job.level, row.density);
    text += row.job.id + line + or_empty(row.test_accuracy) + "," + or_empty(row.test_loss);
    std::snprintf(line, sizeof line, ",%.9g,%.6g,%.6g,", row.train_loss, row.seconds,
                  row.images_per_s);
    text += line + or_empty(row.joules) + (row.joules_measured ? ",yes," : ",no,") + row.worker +
            ",\"" + row.machine + "\"\n";
  }
  return text;
}

Json to_json(const Results& results, const Search& search) {
  Json rows = Json::array(), cells = Json::array(), wins = Json::array(), spans = Json::array();
  for (const ResultRow& row : results.rows) rows.push_back(to_json(row));
  for (const Cell& cell : results.cells) cells.push_back(to_json(cell, search));
  for (const Win& win : results.wins)
    wins.push_back({{"reset", win.reset},
                    {"reset_text", reset_text(win.reset, search)},
                    {"over", kind_name(win.over)},
                    {"from_level", win.level ? Json(*win.level) : Json()},
                    {"margin", win.margin},
                    {"spread", win.spread}});
  for (const WorkSpan& span : results.spans)
    spans.push_back({{"worker", span.worker},
                     {"job", span.job},
                     {"begin", span.begin},
                     {"end", span.end},
                     {"finished", span.finished}});
  return {{"jobs", results.jobs},    {"done", results.rows.size()},
          {"levels", search.levels}, {"rows", rows},
          {"cells", cells},          {"wins", wins},
          {"spans", spans},          {"scaling", to_json(results.scaling)}};
}

}  // namespace regatta::tickets
