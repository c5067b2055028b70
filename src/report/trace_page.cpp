#include "report/trace_page.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "platform/wiring.h"
#include "report/overlay.h"
#include "report/text.h"
#include "trace/energy.h"
#include "trace/link_use.h"

namespace regatta {
namespace {

constexpr std::size_t most_rows = 10;  // of a table

// "layer1.0.conv1" for a segment of one operator, "conv1 … fc" for a longer one.
Json segment_names(const Json& run, const trace::Record& record) {
  Json names = Json::array();
  if (run.contains("plan"))
    for (const Json& segment : run["plan"].value("segments", Json::array())) {
      const std::string first = segment.value("first", ""), last = segment.value("last", "");
      names.push_back(first == last ? first : first + " … " + last);
    }
  for (const trace::TaskKind& kind : record.kinds)
    while (std::ssize(names) <= kind.segment)
      names.push_back("segment " + std::to_string(names.size()));
  return names;
}

// By name of a node: the switches above it, from the root down, where the run's platform has any.
Json switches_above(const Json& run) {
  Json above = Json::object();
  if (!run.contains("platform")) return above;
  const Wiring wiring(platform_from_json(run["platform"], "the run's platform"));
  for (int node = 0; node < wiring.nodes(); ++node)
    if (std::vector<std::string> switches = wiring.switches_above(node); !switches.empty())
      above[wiring.node_name(node)] = std::move(switches);
  return above;
}

// The record's tasks that touch the window, in order of their start.
std::vector<std::size_t> tasks_within(const trace::Record& record, const trace::Window& window) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < record.tasks.size(); ++i) {
    const trace::Task& task = record.tasks[i];
    if (task.worker >= 0 && task.end > window.start && task.start < window.end) shown.push_back(i);
  }
  std::ranges::stable_sort(shown, {}, [&](std::size_t i) { return record.tasks[i].start; });
  return shown;
}

template <class T>
T or_none(std::int64_t value) {
  constexpr T none = std::numeric_limits<T>::max();
  return value < 0 || value >= none ? none : static_cast<T>(value);
}

float span_seconds(trace::Time from, trace::Time to) {
  return from == trace::unknown || to == trace::unknown
             ? -1.0f
             : static_cast<float>(trace::seconds(to - from));
}

class TracePage {
 public:
  TracePage(PageData& page, const trace::Record& record, const trace::Analysis& analysis,
            std::size_t most_tasks)
      : page_(page),
        record_(record),
        analysis_(analysis),
        most_tasks_(most_tasks),
        start_(analysis.window.start),
        tasks_(tasks_within(record, analysis.window)) {
    if (tasks_.size() > most_tasks) {
      notice_ = "The timeline shows the first " +
                count_text(static_cast<std::int64_t>(most_tasks)) + " of " +
                count_text(static_cast<std::int64_t>(tasks_.size())) +
                " tasks; regatta report RUN --window A:B shows all of the steps A to B.";
      tasks_.resize(most_tasks);
    }
    for (std::size_t row = 0; row < tasks_.size(); ++row)
      row_of_[record.tasks[tasks_[row]].id] = static_cast<std::uint32_t>(row);
  }

  void add(const Json& segments, const Json& switches) {
    add_tasks();
    add_idle();
    add_marks();
    add_summary(segments);
    page_.json()["trace"]["switches"] = switches;
    add_links();
    add_tiles();
    add_tables(segments);
  }

 private:
  double offset(trace::Time time) const { return trace::seconds(time - start_); }

  template <class T, class Value>
  void task_column(const char* name, Value value) {
    std::vector<T> column;
    column.reserve(tasks_.size());
    for (const std::size_t i : tasks_) column.push_back(value(record_.tasks[i]));
    page_.add(std::string("task.") + name, column);
  }

  void add_tasks() {
    const std::unordered_set<std::int64_t> critical(analysis_.critical_path.begin(),
                                                    analysis_.critical_path.end());
    std::map<std::string, std::uint16_t> phases;
    const auto phase_of = [&](const trace::Task& task) {
      const std::string& name = record_.kind_of(task).phases;
      const auto next = static_cast<std::uint16_t>(phases.size());
      const auto [found, fresh] = phases.emplace(name, next);
      if (fresh) phase_names_.push_back(name);
      return found->second;
    };
    using trace::Task;
    // What began before the window is shown from its border on.
    const auto begin = [&](const Task& t) { return std::max(t.start, start_); };
    task_column<double>("start", [&](const Task& t) { return offset(begin(t)); });
    task_column<float>("duration", [&](const Task& t) { return span_seconds(begin(t), t.end); });
    task_column<std::uint32_t>("worker",
                               [](const Task& t) { return or_none<std::uint32_t>(t.worker); });
    task_column<std::uint16_t>("phase", phase_of);
    const auto of_kind = [&](std::int32_t trace::TaskKind::*member) {
      return [this, member](const Task& t) {
        return or_none<std::uint16_t>(record_.kind_of(t).*member);
      };
    };
    task_column<std::uint16_t>("segment", of_kind(&trace::TaskKind::segment));
    task_column<std::uint16_t>("part", of_kind(&trace::TaskKind::part));
    task_column<std::uint16_t>("chunk", of_kind(&trace::TaskKind::chunk));
    task_column<std::uint32_t>("step",
                               [](const Task& t) { return or_none<std::uint32_t>(t.step); });
    task_column<float>("ready", [](const Task& t) { return span_seconds(t.ready, t.start); });
    task_column<float>("acquire", [](const Task& t) { return span_seconds(0, t.acquire); });
    task_column<float>("predicted", [](const Task& t) { return span_seconds(0, t.predicted); });
    task_column<std::uint8_t>("critical", [&](const Task& t) { return critical.contains(t.id); });
  }

  void add_idle() {
    std::vector<double> starts;
    std::vector<float> durations;
    std::vector<std::uint32_t> workers;
    std::vector<std::uint8_t> causes;
    std::vector<std::uint32_t> blamed;
    // The first ones, as of tasks.
    std::vector<trace::IdleInterval> shown = analysis_.idle;
    std::ranges::stable_sort(shown, {}, &trace::IdleInterval::start);
    if (shown.size() > most_tasks_) shown.resize(most_tasks_);
    for (const trace::IdleInterval& idle : shown) {
      starts.push_back(offset(idle.start));
      durations.push_back(span_seconds(idle.start, idle.end));
      workers.push_back(or_none<std::uint32_t>(idle.worker));
      causes.push_back(static_cast<std::uint8_t>(idle.cause));
      const auto found = row_of_.find(idle.task);
      blamed.push_back(found == row_of_.end() ? UINT32_MAX : found->second);
    }
    page_.add("idle.start", starts);
    page_.add("idle.duration", durations);
    page_.add("idle.worker", workers);
    page_.add("idle.cause", causes);
    page_.add("idle.task", blamed);
  }

  void add_marks() {
    std::vector<double> times;
    std::vector<std::uint32_t> steps;
    for (const trace::Mark& mark : record_.marks) {
      if (mark.name != "step" || mark.time < start_ || mark.time > analysis_.window.end) continue;
      times.push_back(offset(mark.time));
      steps.push_back(or_none<std::uint32_t>(mark.number));
    }
    page_.add("mark.time", times);
    page_.add("mark.step", steps);
  }

  // Links with the times at which they carried something, as far as the window shows them.
  void add_links() {
    std::vector<trace::Transfer> shown;
    for (const trace::Transfer& each : record_.transfers) {
      const trace::Time from = std::max(each.start, start_);
      const trace::Time to = std::min(each.end, analysis_.window.end);
      if (from >= to) continue;
      const double inside = trace::seconds(to - from) / trace::seconds(each.end - each.start);
      shown.push_back(
          {each.link, from, to, std::llround(inside * static_cast<double>(each.bytes))});
    }
    if (shown.empty()) return;
    std::ranges::stable_sort(shown, {}, &trace::Transfer::start);
    if (shown.size() > most_tasks_) shown.resize(most_tasks_);
    std::vector<double> starts;
    std::vector<float> durations, bytes;
    std::vector<std::uint32_t> links;
    for (const trace::Transfer& each : shown) {
      starts.push_back(offset(each.start));
      durations.push_back(span_seconds(each.start, each.end));
      bytes.push_back(static_cast<float>(each.bytes));
      links.push_back(static_cast<std::uint32_t>(each.link));
    }
    page_.add("transfer.start", starts);
    page_.add("transfer.duration", durations);
    page_.add("transfer.bytes", bytes);
    page_.add("transfer.link", links);
    Json rows = Json::array();
    const std::vector<trace::LinkUse> uses = trace::use_of_links(record_, analysis_.window);
    for (std::size_t i = 0; i < uses.size(); ++i)
      rows.push_back(
          {{"name", trace::link_name(record_.links[i])}, {"busy_s", trace::seconds(uses[i].busy)}});
    page_.json()["trace"]["links"] = rows;
  }

  void add_summary(const Json& segments) {
    Json workers = Json::array(), causes = Json::array();
    const std::vector<std::string> lanes = trace::lane_names(record_);
    for (std::size_t w = 0; w < record_.workers.size(); ++w) {
      Json worker{{"name", lanes[w]},
                  {"node", record_.workers[w].node},
                  {"group", record_.workers[w].group}};
      if (w < analysis_.workers.size()) {
        const trace::WorkerUse& use = analysis_.workers[w];
        worker["busy_s"] = trace::seconds(use.busy);
        worker["idle_s"] = trace::seconds(use.idle);
        worker["overhead_s"] = trace::seconds(use.overhead);
        Json by_cause = Json::array();
        for (const trace::Time time : use.causes) by_cause.push_back(trace::seconds(time));
        worker["idle_by_cause"] = by_cause;
      }
      workers.push_back(worker);
    }
    for (std::size_t c = 0; c < trace::cause_count; ++c) {
      const auto cause = static_cast<trace::Cause>(c);
      std::string name(trace::cause_name(cause));
      std::ranges::replace(name, '_', ' ');
      causes.push_back({{"name", name},
                        {"why", trace::cause_text(cause)},
                        {"seconds", trace::seconds(analysis_.causes[c])}});
    }
    page_.json()["trace"] = {{"workers", workers},
                             {"phases", phase_names_},
                             {"segments", segments},
                             {"causes", causes},
                             {"wall_s", trace::seconds(analysis_.wall())},
                             {"tasks", analysis_.tasks}};
    if (!notice_.empty()) page_.json()["trace"]["notice"] = notice_;
  }

  void add_tiles() {
    Json& tiles = page_.json()["tiles"];
    const double wall = trace::seconds(analysis_.wall());
    const std::ptrdiff_t simulated =
        std::ranges::count(record_.workers, simulated_kind, &trace::Worker::kind);
    const std::ptrdiff_t workers =
        static_cast<std::ptrdiff_t>(trace::worker_count(record_)) - simulated;
    const double all = wall * static_cast<double>(std::max<std::ptrdiff_t>(workers, 1));
    if (all <= 0) return;
    if (analysis_.steps > 0) add_step_tiles(tiles, wall / static_cast<double>(analysis_.steps));
    tiles.push_back(tile("workers busy",
                         formatted("%.1f", 100 * trace::seconds(analysis_.work) / all), "%",
                         "of the recorded " + seconds_text(wall)));
    tiles.push_back(
        tile("efficiency", formatted("%.1f", 100 * analysis_.efficiency()), "%",
             "of the best these tasks allow on " + std::to_string(workers) + " workers"));
    tiles.push_back(tile("critical path",
                         formatted("%.1f", 100 * trace::seconds(analysis_.critical) / wall), "%",
                         seconds_text(trace::seconds(analysis_.critical)) + " of the time"));
    tiles.push_back(
        tile("tasks", count_text(analysis_.tasks), "",
             analysis_.steps > 0 ? "in " + count_text(analysis_.steps) + " steps" : ""));
    add_energy(tiles);
  }

  void add_step_tiles(Json& tiles, double step_s) const {
    const bool simulated = record_.metadata.contains("simulated");
    const std::string steps =
        "mean of " + count_text(analysis_.steps) + (simulated ? " simulated steps" : " steps");
    const std::string time = seconds_text(step_s);
    const std::size_t space = time.find(' ');
    tiles.push_back(tile("step time", time.substr(0, space), time.substr(space + 1), steps));
    const auto samples = record_.metadata.find(trace::samples_key);
    if (samples == record_.metadata.end()) return;
    const double count = std::strtod(samples->second.c_str(), nullptr);
    tiles.push_back(tile("throughput", number_text(count / step_s), "images/s",
                         number_text(count) + " images a step"));
  }

  void add_energy(Json& tiles) const {
    const auto energy =
        trace::energy_of(record_.counters, analysis_.window.first_step, analysis_.window.last_step);
    if (!energy) return;
    tiles.push_back(tile("energy", number_text(energy->a_step()), "J a step",
                         energy->measured ? "measured" : "modelled from the platform's watts"));
  }

  void add_tables(const Json& segments) {
    Json& tables = page_.json()["tables"];
    Json helpful = Json::array();
    for (const trace::KindUse& use : analysis_.kinds) {
      if (helpful.size() >= most_rows) break;
      const trace::TaskKind& kind = record_.kinds[static_cast<std::size_t>(use.kind)];
      helpful.push_back({trace::label(kind), count_text(use.tasks),
                         seconds_text(trace::seconds(use.busy)),
                         seconds_text(trace::seconds(use.critical)),
                         seconds_text(trace::seconds(use.blamed)), seconds_text(use.gain_s)});
    }
    tables.push_back({{"title", "Tasks whose change would help most"},
                      {"hint", "gain: wall time saved if it took none"},
                      {"headings", {"task", "runs", "busy", "critical", "others waited", "gain"}},
                      {"rows", helpful}});
    tables.push_back(segment_table(segments));
    if (!record_.operators.empty()) tables.push_back(operator_table());
    if (!record_.links.empty()) tables.push_back(link_table());
  }

  Json segment_table(const Json& segments) const {
    struct Use {
      std::int64_t tasks = 0;
      trace::Time busy = 0, critical = 0;
    };
    std::map<std::int32_t, Use> by_segment;
    for (const trace::KindUse& use : analysis_.kinds) {
      Use& sum = by_segment[record_.kinds[static_cast<std::size_t>(use.kind)].segment];
      sum.tasks += use.tasks;
      sum.busy += use.busy;
      sum.critical += use.critical;
    }
    std::vector<std::pair<std::int32_t, Use>> sorted(by_segment.begin(), by_segment.end());
    std::ranges::sort(sorted, std::greater{}, [](const auto& each) { return each.second.busy; });
    if (sorted.size() > most_rows) sorted.resize(most_rows);
    Json rows = Json::array();
    for (const auto& [segment, use] : sorted)
      rows.push_back(
          {segment < 0 ? Json("no segment") : segments[static_cast<std::size_t>(segment)],
           count_text(use.tasks), seconds_text(trace::seconds(use.busy)),
           percent_text(share_of_work(use.busy)), seconds_text(trace::seconds(use.critical))});
    return {{"title", "By segment"},
            {"headings", {"segment", "tasks", "busy", "share", "critical"}},
            {"rows", rows}};
  }

  Json operator_table() const {
    std::map<std::int32_t, std::pair<std::int64_t, trace::Time>> by_kind;
    for (const trace::Operator& each : record_.operators) {
      by_kind[each.kind].first += 1;
      by_kind[each.kind].second += each.end - each.start;
    }
    std::vector<std::pair<trace::Time, std::int32_t>> sorted;
    for (const auto& [kind, use] : by_kind) sorted.emplace_back(use.second, kind);
    std::ranges::sort(sorted, std::greater{});
    if (sorted.size() > 2 * most_rows) sorted.resize(2 * most_rows);
    Json rows = Json::array();
    for (const auto& [time, index] : sorted) {
      const trace::OperatorKind& kind = record_.operator_kinds[static_cast<std::size_t>(index)];
      rows.push_back({kind.name + " " + kind.work, count_text(by_kind[index].first),
                      seconds_text(trace::seconds(time)), percent_text(share_of_work(time))});
    }
    return {{"title", "By operator"},
            {"headings", {"operator", "runs", "time", "share"}},
            {"rows", rows}};
  }

  Json link_table() const {
    std::vector<trace::Link> sorted = record_.links;
    std::ranges::stable_sort(sorted, std::greater{}, &trace::Link::bytes);
    if (sorted.size() > most_rows) sorted.resize(most_rows);
    Json rows = Json::array();
    for (const trace::Link& link : sorted)
      rows.push_back({trace::link_name(link), count_text(link.transfers),
                      number_text(static_cast<double>(link.bytes) / 1e6) + " MB"});
    return {{"title", "Transfers"},
            {"hint", sorted.size() < record_.links.size()
                         ? "the " + std::to_string(most_rows) + " links of " +
                               count_text(std::ssize(record_.links)) + " that carried most"
                         : ""},
            {"headings", {"link", "transfers", "data"}},
            {"rows", rows}};
  }

  double share_of_work(trace::Time time) const {
    return analysis_.work > 0 ? static_cast<double>(time) / static_cast<double>(analysis_.work) : 0;
  }

  PageData& page_;
  const trace::Record& record_;
  const trace::Analysis& analysis_;
  std::size_t most_tasks_;
  trace::Time start_;
  std::vector<std::size_t> tasks_;  // indices into the record, by start
  std::string notice_;              // what the page leaves out
  std::unordered_map<std::int64_t, std::uint32_t> row_of_;
  std::vector<std::string> phase_names_;
};

}  // namespace

void add_trace(PageData& page, const Json& run, const trace::Record& record,
               const trace::Analysis& analysis, std::size_t most_tasks) {
  TracePage(page, record, analysis, most_tasks)
      .add(segment_names(run, record), switches_above(run));
}

void add_advice(PageData& page, const std::vector<trace::Finding>& findings) {
  Json advice = Json::array();
  for (const trace::Finding& each : findings)
    advice.push_back(
        {{"what", each.what}, {"fix", each.fix}, {"flag", each.flag}, {"gain", each.gain}});
  page.json()["advice"] = advice;
}

std::vector<StepUse> use_by_step(const trace::Record& record, const trace::Analysis& analysis) {
  std::vector<StepUse> uses;
  std::vector<trace::Time> ends;  // of the steps in `uses`; each begins where the one before ends
  trace::Time previous = analysis.window.start;
  std::vector<trace::Time> begins;
  for (const trace::Mark& mark : record.marks) {
    if (mark.name != "step" || mark.time <= previous || mark.time > analysis.window.end) continue;
    uses.push_back({mark.number, 0, std::nullopt});
    begins.push_back(previous);
    ends.push_back(previous = mark.time);
  }
  for (const trace::IdleInterval& idle : analysis.idle) {
    auto s = static_cast<std::size_t>(std::ranges::upper_bound(ends, idle.start) - ends.begin());
    for (; s < uses.size() && begins[s] < idle.end; ++s) {
      const trace::Time inside = std::min(idle.end, ends[s]) - std::max(idle.start, begins[s]);
      uses[s].idle_share +=
          static_cast<double>(inside) /
          (static_cast<double>(ends[s] - begins[s]) *
           static_cast<double>(std::max<std::size_t>(trace::worker_count(record), 1)));
    }
  }
  for (const trace::Counter& counter : record.counters) {
    if (counter.unit != "J") continue;
    const auto found = std::ranges::find(uses, counter.step, &StepUse::step);
    if (found != uses.end()) found->joules = found->joules.value_or(0) + counter.value;
  }
  return uses;
}

}  // namespace regatta
