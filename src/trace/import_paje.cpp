#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "trace/import.h"

namespace regatta::trace {
namespace {

constexpr std::size_t longest_line = 1 << 20;
constexpr std::size_t most_tasks = 20'000'000;
constexpr std::size_t most_names = 1'000'000;

// States in which a worker does not carry out a task: StarPU's, and those of our own writer.
const std::set<std::string, std::less<>> waiting{"Idle",           "Sleeping",
                                                 "Initializing",   "Deinitializing",
                                                 "Progressing",    "Nothing",
                                                 "Waiting task",   "Waiting all tasks",
                                                 "Parallel sync",  "Hypervisor",
                                                 "Unpartitioning", "Polling",
                                                 "Blocked",        "Throttling task submission"};
const std::set<std::string, std::less<>> runtime{
    "Overhead",      "Scheduling", "FetchingInput", "Fetching Input",
    "PushingOutput", "Callback",   "Building task", "Submitting task"};
const std::set<std::string, std::less<>> fetching{"FetchingInput", "Fetching Input"};

struct EventDefinition {
  std::string name;
  std::vector<std::string> fields;
};

class PajeReader {
 public:
  PajeReader(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}

  Record run() {
    std::string line;
    while (next(line)) {
      if (line.empty()) continue;
      if (line.front() == '%')
        define(line);
      else if (line.front() != '#')
        event(line);
    }
    if (events_ == 0) throw InputError("'" + name_ + "' holds no Paje events: is it whole?");
    for (auto& [alias, worker] : workers_) close(worker, latest_);
    return finish();
  }

 private:
  struct State {
    std::string value;
    Time start = 0;
  };
  struct OpenWorker {
    std::int32_t number = 0;
    std::vector<State> states;     // the last one is at work; others go on after it
    Time runtime_since = unknown;  // since when only the runtime was busy
    Time fetched = 0;              // time spent fetching since then
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError("'" + name_ + "' line " + std::to_string(line_) + ": " + what);
  }

  bool next(std::string& line) {
    line.clear();
    ++line_;
    std::streambuf* buffer = in_.rdbuf();
    int c = buffer->sbumpc();
    if (c == std::char_traits<char>::eof()) return false;
    for (; c != std::char_traits<char>::eof() && c != '\n'; c = buffer->sbumpc()) {
      if (line.size() == longest_line) fail("longer than a line of a trace can be");
      line.push_back(static_cast<char>(c));
    }
    const std::size_t last = line.find_last_not_of(" \t\r");
    line.resize(last == std::string::npos ? 0 : last + 1);
    return true;
  }

  // Fields are set apart by blanks, or held together by quotes.
  std::vector<std::string> split(std::string_view line) const {
    std::vector<std::string> fields;
    std::size_t at = 0;
    while ((at = line.find_first_not_of(" \t", at)) != std::string_view::npos) {
      if (line[at] == '"') {
        const std::size_t end = line.find('"', at + 1);
        if (end == std::string_view::npos) fail("a quote is not closed");
        fields.emplace_back(line.substr(at + 1, end - at - 1));
        at = end + 1;
      } else {
        const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
        fields.emplace_back(line.substr(at, end - at));
        at = end;
      }
    }
    return fields;
  }

  // "%EventDef PajeSetState 10", then a line per field, then "%EndEventDef".
  void define(const std::string& line) {
    const std::vector<std::string> words = split(std::string_view(line).substr(1));
    if (words.empty()) return;
    if (words[0] == "EventDef") {
      if (words.size() < 3) fail("an event definition needs a name and a number");
      if (definitions_.size() > most_names) fail("too many event definitions");
      defining_ = words[2];
      definitions_[defining_] = {words[1], {}};
      return;
    }
    if (words[0] == "EndEventDef") {
      if (defining_.empty()) fail("the end of an event definition that did not begin");
      defining_.clear();
      return;
    }
    if (defining_.empty()) fail("a field outside of an event definition");
    definitions_[defining_].fields.push_back(words[0]);
    // StarPU's own additions tell its traces, which count in milliseconds; Paje counts in seconds.
    if (words[0] == "SubmitOrder") per_second_ = 1e6;
  }

  void event(const std::string& line) {
    const std::vector<std::string> words = split(line);
    if (words.empty()) return;
    const auto found = definitions_.find(words[0]);
    if (found == definitions_.end())
      fail(events_ == 0 ? "not a Paje trace: an event that the header does not define"
                        : "an event that the header does not define");
    ++events_;
    const EventDefinition& definition = found->second;
    if (words.size() - 1 < definition.fields.size())
      fail(definition.name + " needs " + std::to_string(definition.fields.size()) +
           " fields, here are " + std::to_string(words.size() - 1) + ": is the file whole?");
    const auto field = [&](std::string_view name) -> std::string {
      for (std::size_t i = 0; i < definition.fields.size(); ++i)
        if (definition.fields[i] == name) return words[i + 1];
      return "";
    };
    if (definition.name == "PajeDefineStateType") {
      if (field("Name") == "Worker State") state_type_ = alias(field);
    } else if (definition.name == "PajeDefineEntityValue") {
      if (values_.size() > most_names) fail("too many values");
      values_[{field("Type"), alias(field)}] = field("Name");
    } else if (definition.name == "PajeCreateContainer") {
      if (containers_.size() > most_names) fail("too many containers");
      containers_[alias(field)] = {field("Name"), field("Container")};
    } else if (definition.name == "PajeSetState" || definition.name == "PajePushState" ||
               definition.name == "PajePopState") {
      state(definition.name, field("Type"), field("Container"), field("Value"),
            time(field("Time")));
    } else if (!field("Time").empty()) {
      time(field("Time"));
    }
  }

  template <class Field>
  static std::string alias(const Field& field) {
    const std::string alias = field("Alias");
    return alias.empty() ? field("Name") : alias;
  }

  Time time(const std::string& text) {
    double value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || stop != text.data() + text.size() || !(value >= 0) || value > 1e9)
      fail("'" + text + "' is no time");
    const auto time = static_cast<Time>(std::llround(value * per_second_));
    latest_ = std::max(latest_, time);
    return time;
  }

  void state(const std::string& event, const std::string& type, const std::string& container,
             const std::string& value, Time now) {
    if (state_type_ && type != *state_type_ && type != "Worker State") return;
    const auto [found, fresh] = workers_.try_emplace(container);
    OpenWorker& worker = found->second;
    if (fresh) {
      if (workers_.size() > most_names / 10) fail("too many workers");
      worker.number = static_cast<std::int32_t>(record_.workers.size());
      record_.workers.push_back(worker_of(container));
    }
    if (!worker.states.empty() && now < worker.states.back().start)
      fail("the time of '" + container + "' runs backwards");
    const auto known = values_.find({type, value});
    const std::string name = known == values_.end() ? value : known->second;
    if (event == "PajePopState") {
      if (worker.states.empty()) return;
      end(worker, now);
      worker.states.pop_back();
      if (!worker.states.empty()) worker.states.back().start = now;
      return;
    }
    // StarPU says the beginning of a task twice, in short and with details.
    if (event == "PajeSetState" && !worker.states.empty() && worker.states.back().value == name &&
        worker.states.back().start == now)
      return;
    if (!worker.states.empty()) end(worker, now);
    if (event == "PajeSetState" && !worker.states.empty()) worker.states.pop_back();
    if (worker.states.size() > 1000) fail("states are pushed a thousand deep");
    worker.states.push_back({name, now});
  }

  Worker worker_of(const std::string& alias) const {
    Worker worker{alias, "imported", "here", "cpu"};
    const auto found = containers_.find(alias);
    if (found == containers_.end()) return worker;
    if (!found->second.first.empty()) worker.name = found->second.first;
    if (worker.name.find("CUDA") != std::string::npos || worker.name.starts_with("cuda"))
      worker.kind = "cuda";
    return worker;
  }

  // The state at work ends, or is interrupted.
  void end(OpenWorker& worker, Time now) {
    const State& state = worker.states.back();
    if (waiting.contains(state.value)) {
      if (now > state.start) worker.runtime_since = unknown;
      worker.fetched = 0;
      return;
    }
    if (runtime.contains(state.value)) {
      if (worker.runtime_since == unknown) worker.runtime_since = state.start;
      if (fetching.contains(state.value)) worker.fetched += now - state.start;
      return;
    }
    if (record_.tasks.size() == most_tasks)
      fail("more than " + std::to_string(most_tasks) + " tasks: cut the trace first");
    Task task;
    task.kind = kind(state.value);
    task.worker = worker.number;
    task.start = state.start;
    task.end = now;
    task.ready = worker.runtime_since == unknown ? state.start : worker.runtime_since;
    task.acquire = worker.fetched;
    record_.tasks.push_back(task);
    worker.runtime_since = unknown;
    worker.fetched = 0;
  }

  void close(OpenWorker& worker, Time now) {
    if (!worker.states.empty()) end(worker, std::max(now, worker.states.back().start));
    worker.states.clear();
  }

  std::int32_t kind(std::string value) {
    constexpr std::string_view executing = "Executing ";
    if (value.starts_with(executing)) value.erase(0, executing.size());
    const auto [found, fresh] =
        kinds_.try_emplace(value, static_cast<std::int32_t>(record_.kinds.size()));
    if (fresh) record_.kinds.push_back({.job = "paje", .phases = value, .group = "imported"});
    return found->second;
  }

  Record finish() {
    std::ranges::stable_sort(record_.tasks, {}, &Task::start);
    for (std::size_t i = 0; i < record_.tasks.size(); ++i)
      record_.tasks[i].id = static_cast<std::int64_t>(i);
    record_.metadata["imported from"] = name_;
    if (record_.tasks.empty())
      throw InputError("'" + name_ + "' has no states of workers that carry out tasks");
    return std::move(record_);
  }

  std::istream& in_;
  std::string name_;
  std::int64_t line_ = 0;
  std::size_t events_ = 0;
  double per_second_ = 1e9;
  std::string defining_;
  std::map<std::string, EventDefinition> definitions_;
  std::optional<std::string> state_type_;
  std::map<std::pair<std::string, std::string>, std::string> values_;
  std::map<std::string, std::pair<std::string, std::string>> containers_;  // name, parent
  std::map<std::string, OpenWorker> workers_;
  std::map<std::string, std::int32_t> kinds_;
  Time latest_ = 0;
  Record record_;
};

}  // namespace

Record import_paje(std::istream& in, const std::string& name) { return PajeReader(in, name).run(); }

}  // namespace regatta::trace
