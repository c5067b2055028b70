#include "trace/merge.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/error.h"

namespace regatta::trace {
namespace {

std::optional<Time> time_in(const Record& record, const char* key) {
  const auto found = record.metadata.find(key);
  if (found == record.metadata.end()) return std::nullopt;
  Time time = 0;
  const char* end = found->second.data() + found->second.size();
  if (std::from_chars(found->second.data(), end, time).ptr != end) return std::nullopt;
  return time;
}

Time begin_of(const Record& record, const std::string& node) {
  if (const std::optional<Time> begin = time_in(record, clock_begin_key)) return *begin;
  throw InputError("the record of node '" + node + "' does not tell when it began");
}

// Replaces every known time of a record by change(time); unknown times stay unknown.
template <class Change>
void change_times(Record& record, const Change& change) {
  for (Task& task : record.tasks) {
    if (task.submit != unknown) task.submit = change(task.submit);
    if (task.ready != unknown) task.ready = change(task.ready);
    task.start = change(task.start);
    task.end = std::max(task.start, change(task.end));
  }
  for (Operator& each : record.operators) {
    each.start = change(each.start);
    each.end = std::max(each.start, change(each.end));
  }
  for (Transfer& each : record.transfers) {
    each.start = change(each.start);
    each.end = std::max(each.start, change(each.end));
  }
  for (Mark& mark : record.marks) mark.time = change(mark.time);
  for (Counter& counter : record.counters) counter.time = change(counter.time);
}

template <class Row>
void append(std::vector<Row>& to, std::vector<Row>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Appends the rows of a later node to those of the nodes before.
void add(Record& all, NodeRecord& node) {
  Record& own = node.record;
  const auto workers = static_cast<std::int32_t>(all.workers.size());
  const auto kinds = static_cast<std::int32_t>(all.kinds.size());
  const auto operators = static_cast<std::int32_t>(all.operator_kinds.size());
  const auto links = static_cast<std::int32_t>(all.links.size());
  const std::int64_t first_id = all.tasks.empty() ? 0 : all.tasks.back().id + 1;
  for (Task& task : own.tasks) {
    task.id += first_id;
    task.kind += kinds;
    task.worker += workers;
  }
  for (Dependency& each : own.dependencies) {
    each.task += first_id;
    each.on += first_id;
  }
  for (Operator& each : own.operators) {
    if (each.task >= 0) each.task += first_id;
    if (each.worker >= 0) each.worker += workers;
    each.kind += operators;
  }
  for (Link& link : own.links) {
    link.from = node.node + " " + link.from;
    if (!link.to.empty()) link.to = node.node + " " + link.to;
  }
  for (Transfer& each : own.transfers) each.link += links;
  if (node.shares_machine)
    std::erase_if(own.counters, [](const Counter& counter) {
      return counter.unit == "J" && counter.source == "measured";
    });
  append(all.workers, own.workers);
  append(all.kinds, own.kinds);
  append(all.tasks, own.tasks);
  append(all.dependencies, own.dependencies);
  append(all.operator_kinds, own.operator_kinds);
  append(all.operators, own.operators);
  append(all.links, own.links);
  append(all.transfers, own.transfers);
  append(all.counters, own.counters);
}

}  // namespace

Time ClockLine::to_first(Time there) const {
  const Time between = last_at - first_at;
  if (between <= 0) return there - first_offset;
  const double slope =
      static_cast<double>(last_offset - first_offset) / static_cast<double>(between);
  return there - first_offset -
         static_cast<Time>(slope * static_cast<double>(there - first_offset - first_at));
}

Record merged(std::vector<NodeRecord> nodes) {
  const Time begin = begin_of(nodes.front().record, nodes.front().node);
  Time earliest = 0, error = 0;
  for (NodeRecord& node : nodes) {
    for (Worker& worker : node.record.workers) worker.node = node.node;
    error = std::max(error, node.clock.error);
    if (&node == &nodes.front()) continue;
    const Time own = begin_of(node.record, node.node);
    // A node's record may begin before the first node's: times would be negative, so all are
    // shifted below.
    const auto on_first = [&](Time time) {
      const Time there = node.clock.to_first(own + time) - begin;
      earliest = std::min(earliest, there);
      return there;
    };
    change_times(node.record, on_first);
  }
  if (earliest < 0)
    for (NodeRecord& node : nodes)
      change_times(node.record, [&](Time time) { return time - earliest; });
  Record all = std::move(nodes.front().record);
  for (std::size_t n = 1; n < nodes.size(); ++n) add(all, nodes[n]);
  all.metadata[clock_error_key] = std::to_string(error);
  return all;
}

std::optional<Time> clock_error(const Record& record) { return time_in(record, clock_error_key); }

std::string clock_text(const Record& record) {
  const std::optional<Time> error = clock_error(record);
  if (!error) return "";
  char text[80];
  std::snprintf(text, sizeof text, "the nodes' clocks are matched to within %.3g us",
                1e6 * seconds(*error));
  return text;
}

}  // namespace regatta::trace
