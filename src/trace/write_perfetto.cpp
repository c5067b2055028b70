#include <algorithm>
#include <cstdio>
#include <map>

#include "base/json.h"
#include "trace/task_index.h"
#include "trace/writers.h"

namespace regatta::trace {
namespace {

// Microseconds, to the nanosecond.
std::string microseconds(Time time) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(time / 1000),
                static_cast<int>(time % 1000));
  return text;
}

class PerfettoWriter {
 public:
  PerfettoWriter(std::ostream& out, const Record& record)
      : out_(out),
        record_(record),
        has_kernels_(std::ranges::find(record.operator_kinds, "kernel", &OperatorKind::op) !=
                     record.operator_kinds.end()) {
    for (const Worker& worker : record.workers)
      process_.push_back(
          nodes_.try_emplace(worker.node, static_cast<int>(nodes_.size()) + 1).first->second);
  }

  void run() {
    out_ << "{\"displayTimeUnit\":\"ns\",\"otherData\":" << Json(record_.metadata).dump()
         << ",\"traceEvents\":[\n";
    tracks();
    for (const Task& task : record_.tasks) slice(task);
    for (const Operator& each : record_.operators) slice(each);
    arrows();
    links();
    for (const Mark& mark : record_.marks)
      event("{\"ph\":\"i\",\"s\":\"g\",\"pid\":0,\"tid\":0,\"name\":" +
            quoted(mark.name + " " + std::to_string(mark.number)) +
            ",\"ts\":" + microseconds(mark.time) + "}");
    for (const Counter& counter : record_.counters)
      event(
          "{\"ph\":\"C\",\"pid\":0,\"name\":" + quoted(counter.name + " (" + counter.source + ")") +
          ",\"ts\":" + microseconds(counter.time) + ",\"args\":{" + quoted(counter.unit) + ":" +
          Json(counter.value).dump() + "}}");
    out_ << "\n]}\n";
  }

 private:
  static std::string quoted(const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void event(const std::string& text) {
    if (!first_) out_ << ",\n";
    first_ = false;
    out_ << text;
  }
  static std::string at(int process, std::size_t thread) {
    return ",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(thread);
  }
  std::string track(std::int32_t worker) const {
    const auto w = static_cast<std::size_t>(worker);
    return at(process_[w], w + 1);
  }
  // The host sees a GPU's task begin and end a little late, so kernels do not lie inside of it.
  std::string kernel_track(std::int32_t worker) const {
    const auto w = static_cast<std::size_t>(worker);
    return at(process_[w], record_.workers.size() + w + 1);
  }

  void process(int number, const std::string& name) {
    event("{\"ph\":\"M\",\"pid\":" + std::to_string(number) +
          ",\"name\":\"process_name\",\"args\":{\"name\":" + quoted(name) + "}}");
    event("{\"ph\":\"M\",\"pid\":" + std::to_string(number) +
          ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" + std::to_string(number) +
          "}}");
  }

  // A process for each node, a thread for each of its workers. Marks and counters are of process 0.
  void tracks() {
    process(0, "regatta");
    for (const auto& [node, number] : nodes_) process(number, node);
    for (std::size_t w = 0; w < record_.workers.size(); ++w) {
      const auto worker = static_cast<std::int32_t>(w);
      const Worker& each = record_.workers[w];
      event("{\"ph\":\"M\",\"name\":\"thread_name\"" + track(worker) +
            ",\"args\":{\"name\":" + quoted(each.name + " (" + each.group + ")") + "}}");
      event("{\"ph\":\"M\",\"name\":\"thread_sort_index\"" + track(worker) +
            ",\"args\":{\"sort_index\":" + std::to_string(2 * w) + "}}");
      if (each.kind != "cuda" || !has_kernels_) continue;
      event("{\"ph\":\"M\",\"name\":\"thread_name\"" + kernel_track(worker) +
            ",\"args\":{\"name\":" + quoted(each.name + " kernels") + "}}");
      event("{\"ph\":\"M\",\"name\":\"thread_sort_index\"" + kernel_track(worker) +
            ",\"args\":{\"sort_index\":" + std::to_string(2 * w + 1) + "}}");
    }
  }

  void slice(const Task& task) {
    const TaskKind& kind = record_.kind_of(task);
    std::string arguments = "\"id\":" + std::to_string(task.id) +
                            ",\"step\":" + std::to_string(task.step) +
                            ",\"phases\":" + quoted(kind.phases);
    const auto time = [&](const char* name, Time value) {
      if (value != unknown) arguments += std::string(",\"") + name + "_us\":" + microseconds(value);
    };
    time("submit", task.submit);
    time("ready", task.ready);
    time("acquire", task.acquire);
    time("predicted", task.predicted);
    event("{\"ph\":\"X\",\"cat\":" + quoted(main_phase(kind)) + ",\"name\":" + quoted(label(kind)) +
          track(task.worker) + ",\"ts\":" + microseconds(task.start) +
          ",\"dur\":" + microseconds(task.duration()) + ",\"args\":{" + arguments + "}}");
  }

  void slice(const Operator& each) {
    const OperatorKind& kind = record_.operator_kinds[static_cast<std::size_t>(each.kind)];
    const std::string line = kind.op == "kernel" ? kernel_track(each.worker) : track(each.worker);
    event("{\"ph\":\"X\",\"cat\":\"operator\",\"name\":" + quoted(kind.name) + line + ",\"ts\":" +
          microseconds(each.start) + ",\"dur\":" + microseconds(each.end - each.start) +
          ",\"args\":{\"op\":" + quoted(kind.op) + ",\"work\":" + quoted(kind.work) + "}}");
  }

  // One arrow per task, from what kept it waiting: more would hide the picture.
  void arrows() {
    const TaskIndex index(record_);
    for (std::size_t i = 0; i < record_.tasks.size(); ++i) {
      const Task& task = record_.tasks[i];
      const std::int64_t on = index.last_dependency(static_cast<std::int64_t>(i));
      if (on < 0) continue;
      const Task& before = record_.tasks[static_cast<std::size_t>(on)];
      // Viewers bind an arrow to the slice that is open at its time.
      const Time from = std::max(before.start, before.end - 1);
      const std::string id =
          ",\"cat\":\"dependency\",\"name\":\"dependency\",\"id\":" + std::to_string(task.id);
      event("{\"ph\":\"s\"" + id + track(before.worker) + ",\"ts\":" + microseconds(from) + "}");
      event("{\"ph\":\"f\",\"bp\":\"e\"" + id + track(task.worker) +
            ",\"ts\":" + microseconds(std::max(task.start, from)) + "}");
    }
  }

  // A thread for each link that carried something.
  void links() {
    if (record_.transfers.empty()) return;
    const int number = static_cast<int>(nodes_.size()) + 1;
    process(number, "links");
    std::int32_t named = -1;
    for (const Transfer& each : record_.transfers) {
      const std::string line = at(number, static_cast<std::size_t>(each.link) + 1);
      if (each.link != named)
        event("{\"ph\":\"M\",\"name\":\"thread_name\"" + line + ",\"args\":{\"name\":" +
              quoted(link_name(record_.links[static_cast<std::size_t>(each.link)])) + "}}");
      named = each.link;
      event("{\"ph\":\"X\",\"cat\":\"transfer\",\"name\":\"transfer\"" + line + ",\"ts\":" +
            microseconds(each.start) + ",\"dur\":" + microseconds(each.end - each.start) +
            ",\"args\":{\"bytes\":" + std::to_string(each.bytes) + "}}");
    }
  }

  std::ostream& out_;
  const Record& record_;
  bool has_kernels_;
  std::map<std::string, int> nodes_;  // the process of each
  std::vector<int> process_;          // by worker
  bool first_ = true;
};

}  // namespace

void write_perfetto(std::ostream& out, const Record& record) { PerfettoWriter(out, record).run(); }

}  // namespace regatta::trace
