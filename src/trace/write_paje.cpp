#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "trace/analysis.h"
#include "trace/task_index.h"
#include "trace/writers.h"

namespace regatta::trace {
namespace {

// Seconds, to the nanosecond, as Paje wants them.
std::string date(Time time) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%09d", static_cast<long long>(time / 1'000'000'000),
                static_cast<int>(time % 1'000'000'000));
  return text;
}

std::string quoted(const std::string& text) {
  std::string safe = "\"";
  for (const char c : text) safe += c == '"' || c == '\n' || c == '\r' ? ' ' : c;
  return safe + "\"";
}

// Event numbers of the header below.
enum Event {
  define_container = 1,
  define_event,
  define_state,
  define_variable,
  define_link,
  define_value,
  create_container,
  destroy_container,
  set_state,
  set_variable,
  start_link,
  end_link,
  new_event,
};

constexpr const char* header = R"(%EventDef PajeDefineContainerType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineEventType 2
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeDefineStateType 3
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineVariableType 4
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeDefineLinkType 5
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 6
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 7
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 8
% Time date
% Type string
% Name string
%EndEventDef
%EventDef PajeSetState 9
% Time date
% Type string
% Container string
% Value string
% Task string
%EndEventDef
%EventDef PajeSetVariable 10
% Time date
% Type string
% Container string
% Value double
%EndEventDef
%EventDef PajeStartLink 11
% Time date
% Type string
% Container string
% StartContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajeEndLink 12
% Time date
% Type string
% Container string
% EndContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajeNewEvent 13
% Time date
% Type string
% Container string
% Value string
%EndEventDef
)";

// Colours of what workers do: quiet ones for waiting.
const std::map<std::string, const char*> colours{{"Executing forward", ".20 .55 .85"},
                                                 {"Executing backward", ".90 .55 .15"},
                                                 {"Executing weight_gradient", ".95 .75 .45"},
                                                 {"Executing load", ".35 .70 .35"},
                                                 {"Executing combine", ".75 .30 .60"},
                                                 {"Executing reduce", ".80 .25 .25"},
                                                 {"Executing update", ".55 .35 .75"},
                                                 {"Overhead", ".50 .18 .00"},
                                                 {"Scheduling", ".70 .36 .00"},
                                                 {"Sleeping", ".90 .90 .90"},
                                                 {"Idle", ".75 .75 .75"},
                                                 {"Fetching Input", "1.0 .10 1.0"},
                                                 {"Executing", ".00 .60 .40"}};

class PajeWriter {
 public:
  PajeWriter(std::ostream& out, const Record& record) : out_(out), record_(record), index_(record) {
    if (!record.tasks.empty()) window_.start = record.tasks.front().start;
    for (const Task& task : record.tasks) {
      window_.start = std::min(window_.start, task.start);
      window_.end = std::max(window_.end, task.end);
    }
    for (const Mark& mark : record.marks) window_.start = std::min(window_.start, mark.time);
    for (const Mark& mark : record.marks) window_.end = std::max(window_.end, mark.time);
    for (const Counter& each : record.counters) window_.end = std::max(window_.end, each.time);
    for (const Transfer& each : record.transfers) {
      window_.start = std::min(window_.start, each.start);
      window_.end = std::max(window_.end, each.end);
    }
  }

  void run() {
    out_ << header;
    define();
    containers();
    states();
    transfers();
    marks();
    links();
    counters();
    // Readers want time to rise.
    std::ranges::stable_sort(events_, {}, &std::pair<Time, std::string>::first);
    for (const auto& [time, text] : events_) out_ << text << '\n';
    close();
  }

 private:
  template <class... Fields>
  static std::string line(Event event, const Fields&... fields) {
    std::string text = std::to_string(event);
    ((text += " " + std::string(fields)), ...);
    return text;
  }
  template <class... Fields>
  void at(Time time, Event event, const Fields&... fields) {
    // Viewers begin at 0.
    events_.emplace_back(time, line(event, date(time - window_.start), fields...));
  }
  static std::string worker(std::int64_t number) { return "w" + std::to_string(number); }
  static std::string carrier(std::int32_t link) { return "l" + std::to_string(link); }

  std::string executing(const Task& task) const {
    return "Executing " + main_phase(record_.kind_of(task));
  }

  void define() {
    out_ << line(define_container, "P", "0", "\"Program\"") << '\n'
         << line(define_container, "N", "P", "\"Node\"") << '\n'
         << line(define_container, "G", "N", "\"Group\"") << '\n'
         << line(define_container, "W", "G", "\"Worker\"") << '\n'
         << line(define_container, "L", "P", "\"Link\"") << '\n'
         << line(define_state, "S", "W", "\"Worker State\"") << '\n'
         << line(define_state, "T", "L", "\"Link State\"") << '\n'
         << line(define_event, "M", "P", "\"Mark\"", "\".2 .2 .2\"") << '\n'
         << line(define_link, "D", "P", "W", "W", "\"Dependency\"") << '\n';
    std::set<std::string> values{"Overhead", "Scheduling", "Sleeping", "Idle", "Fetching Input"};
    for (const TaskKind& kind : record_.kinds) values.insert("Executing " + main_phase(kind));
    for (const std::string& value : values) {
      auto colour = colours.find(value);
      if (colour == colours.end()) colour = colours.find("Executing");
      value_alias_[value] = "v" + std::to_string(value_alias_.size());
      out_ << line(define_value, value_alias_[value], "S", quoted(value), quoted(colour->second))
           << '\n';
    }
    out_ << line(define_value, "carrying", "T", "\"Carrying\"", "\".20 .60 .60\"") << '\n'
         << line(define_value, "free", "T", "\"Idle\"", "\".90 .90 .90\"") << '\n'
         << line(define_value, "dep", "D", "\"dependency\"", "\".6 .6 .6\"") << '\n'
         << line(define_value, "mark", "M", "\"mark\"", "\".2 .2 .2\"") << '\n';
    std::set<std::string> names;
    for (const Counter& counter : record_.counters) names.insert(counter_name(counter));
    for (const std::string& name : names) {
      counter_alias_[name] = "c" + std::to_string(counter_alias_.size());
      out_ << line(define_variable, counter_alias_[name], "P", quoted(name), "\".8 .1 .1\"")
           << '\n';
    }
  }

  static std::string counter_name(const Counter& counter) {
    return counter.name + " " + counter.unit + " (" + counter.source + ")";
  }

  void containers() {
    const std::string begin = date(0);
    out_ << line(create_container, begin, "p", "P", "0", "\"regatta\"") << '\n';
    const std::vector<std::string> lanes = lane_names(record_);
    for (std::size_t w = 0; w < record_.workers.size(); ++w) {
      const Worker& each = record_.workers[w];
      const auto [node, new_node] =
          nodes_.try_emplace(each.node, "n" + std::to_string(nodes_.size()));
      if (new_node)
        out_ << line(create_container, begin, node->second, "N", "p", quoted(each.node)) << '\n';
      const auto [group, new_group] =
          groups_.try_emplace({each.node, each.group}, "g" + std::to_string(groups_.size()));
      if (new_group)
        out_ << line(create_container, begin, group->second, "G", node->second, quoted(each.group))
             << '\n';
      out_ << line(create_container, begin, worker(static_cast<std::int64_t>(w)), "W",
                   group->second, quoted(lanes[w]))
           << '\n';
    }
    for (const Transfer& each : record_.transfers)
      if (carriers_.insert(each.link).second)
        out_ << line(create_container, begin, carrier(each.link), "L", "p",
                     quoted(link_name(record_.links[static_cast<std::size_t>(each.link)])))
             << '\n';
  }

  void transfers() {
    for (const Transfer& each : record_.transfers) {
      at(each.start, set_state, "T", carrier(each.link), "carrying",
         quoted(std::to_string(each.bytes) + " bytes"));
      at(each.end, set_state, "T", carrier(each.link), "free", "\"\"");
    }
  }

  void state(Time time, std::size_t w, const std::string& value, const std::string& task) {
    at(time, set_state, "S", worker(static_cast<std::int64_t>(w)), value_alias_.at(value),
       quoted(task));
  }

  void states() {
    for (std::size_t w = 0; w < record_.workers.size(); ++w) {
      Time free = window_.start;
      for (const std::int64_t position : index_.of_worker(w)) {
        const Task& task = record_.tasks[static_cast<std::size_t>(position)];
        if (task.start > free) wait(w, free, task);
        state(task.start, w, executing(task), label(record_.kind_of(task)));
        free = std::max(free, task.end);
      }
      state(free, w, "Idle", "");
    }
  }

  // Sleeps until the task is ready; then the runtime schedules it, and fetches its data. Between
  // two tasks that were both ready, it is overhead.
  void wait(std::size_t w, Time free, const Task& task) {
    const std::string name = label(record_.kind_of(task));
    const Time ready =
        task.ready == unknown ? task.start : std::clamp(task.ready, free, task.start);
    const Time fetch = std::clamp(task.start - task.acquire, ready, task.start);
    if (ready > free) state(free, w, free == window_.start ? "Idle" : "Sleeping", "");
    if (fetch > ready) state(ready, w, ready > free ? "Scheduling" : "Overhead", name);
    if (task.start > fetch) state(fetch, w, "Fetching Input", name);
  }

  void marks() {
    for (const Mark& mark : record_.marks)
      at(mark.time, new_event, "M", "p", quoted(mark.name + " " + std::to_string(mark.number)));
  }

  void links() {
    for (std::size_t i = 0; i < record_.tasks.size(); ++i) {
      const Task& task = record_.tasks[i];
      const std::int64_t on = index_.last_dependency(static_cast<std::int64_t>(i));
      if (on < 0) continue;
      const Task& before = record_.tasks[static_cast<std::size_t>(on)];
      if (before.end > task.start || before.worker == task.worker) continue;
      const std::string key = "k" + std::to_string(task.id);
      at(before.end, start_link, "D", "p", worker(before.worker), "dep", key);
      at(task.start, end_link, "D", "p", worker(task.worker), "dep", key);
    }
  }

  void counters() {
    for (const Counter& each : record_.counters)
      at(each.time, set_variable, counter_alias_.at(counter_name(each)), "p",
         std::to_string(each.value));
  }

  void close() {
    const std::string end = date(window_.end - window_.start);
    for (std::size_t w = 0; w < record_.workers.size(); ++w)
      out_ << line(destroy_container, end, "W", worker(static_cast<std::int64_t>(w))) << '\n';
    for (const std::int32_t link : carriers_)
      out_ << line(destroy_container, end, "L", carrier(link)) << '\n';
    for (const auto& [key, alias] : groups_)
      out_ << line(destroy_container, end, "G", alias) << '\n';
    for (const auto& [key, alias] : nodes_)
      out_ << line(destroy_container, end, "N", alias) << '\n';
    out_ << line(destroy_container, end, "P", "p") << '\n';
  }

  std::ostream& out_;
  const Record& record_;
  TaskIndex index_;
  Window window_;
  std::map<std::string, std::string> value_alias_, counter_alias_, nodes_;
  std::map<std::pair<std::string, std::string>, std::string> groups_;
  std::set<std::int32_t> carriers_;  // links with transfers
  std::vector<std::pair<Time, std::string>> events_;
};

}  // namespace

void write_paje(std::ostream& out, const Record& record) { PajeWriter(out, record).run(); }

}  // namespace regatta::trace
