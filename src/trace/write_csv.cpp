#include "trace/writers.h"

namespace regatta::trace {
namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string known(std::int64_t value) { return value < 0 ? "" : std::to_string(value); }

}  // namespace

void write_csv(std::ostream& out, const Record& record) {
  out << "id,step,job,phases,segment,part,chunk,bucket,worker,group,node,submit_ns,ready_ns,"
         "start_ns,end_ns,acquire_ns,predicted_ns,flops,priority\n";
  for (const Task& task : record.tasks) {
    const TaskKind& kind = record.kind_of(task);
    const Worker& worker = record.workers[static_cast<std::size_t>(task.worker)];
    out << task.id << ',' << task.step << ',' << cell(kind.job) << ',' << cell(kind.phases) << ','
        << known(kind.segment) << ',' << known(kind.part) << ',' << known(kind.chunk) << ','
        << known(kind.bucket) << ',' << cell(worker.name) << ',' << cell(worker.group) << ','
        << cell(worker.node) << ',' << known(task.submit) << ',' << known(task.ready) << ','
        << task.start << ',' << task.end << ',' << task.acquire << ',' << known(task.predicted)
        << ',' << kind.flops << ',' << kind.priority << '\n';
  }
}

}  // namespace regatta::trace
