#include "trace/trace.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

namespace regatta::trace {

std::string label(const TaskKind& kind) {
  std::string text = kind.phases;
  const auto piece = [&](char letter, std::int32_t number) {
    if (number >= 0) text += std::string(" ") + letter + std::to_string(number);
  };
  piece('s', kind.segment);
  piece('p', kind.part);
  piece('c', kind.chunk);
  piece('b', kind.bucket);
  return text;
}

std::string main_phase(const TaskKind& kind) {
  // In this order of weight: what a task is mostly there for.
  static constexpr std::array<std::string_view, 7> weight{
      "forward", "backward", "weight_gradient", "combine", "reduce", "update", "load"};
  const std::string_view phases = kind.phases;
  for (const std::string_view each : weight) {
    std::size_t begin = 0;
    while (begin <= phases.size()) {
      const std::size_t end = std::min(phases.find('+', begin), phases.size());
      if (phases.substr(begin, end - begin) == each) return std::string(each);
      begin = end + 1;
    }
  }
  return std::string(phases.substr(0, phases.find('+')));
}

std::string link_name(const Link& link) {
  return link.to.empty() ? link.from : link.from + " → " + link.to;
}

std::size_t worker_count(const Record& record) {
  return static_cast<std::size_t>(std::ranges::count_if(record.workers, computes));
}

std::vector<std::string> lane_names(const Record& record) {
  const bool several = std::ranges::adjacent_find(record.workers, std::ranges::not_equal_to{},
                                                  &Worker::node) != record.workers.end();
  std::vector<std::string> names;
  for (const Worker& worker : record.workers)
    names.push_back(several && !worker.node.empty() ? worker.node + " · " + worker.name
                                                    : worker.name);
  return names;
}

std::vector<std::string> faults(const Record& record) {
  constexpr std::size_t most = 10;
  std::vector<std::string> found;
  const auto say = [&](std::string text) {
    if (found.size() < most) found.push_back(std::move(text));
  };
  const auto within = [](std::int64_t index, std::size_t size) {
    return index >= 0 && static_cast<std::size_t>(index) < size;
  };
  std::int64_t before = -1;
  for (const Task& task : record.tasks) {
    const std::string who = "task " + std::to_string(task.id);
    if (task.id <= before) say(who + " comes after task " + std::to_string(before));
    before = task.id;
    if (!within(task.kind, record.kinds.size())) say(who + ": its kind is not in the record");
    if (!within(task.worker, record.workers.size())) say(who + ": its worker is not in the record");
    if (task.start < 0 || task.end < task.start) say(who + ": its times run backwards");
    if (task.acquire < 0) say(who + ": a negative time to acquire data");
  }
  for (const Dependency& each : record.dependencies)
    if (each.on >= each.task)
      say("task " + std::to_string(each.task) + " depends on task " + std::to_string(each.on) +
          ", which is not before it");
  for (const Operator& each : record.operators) {
    if (!within(each.kind, record.operator_kinds.size()))
      say("an operator's kind is not in the record");
    if (each.worker >= 0 && !within(each.worker, record.workers.size()))
      say("an operator's worker is not in the record");
    if (each.start < 0 || each.end < each.start) say("an operator's times run backwards");
  }
  for (const Transfer& each : record.transfers) {
    if (!within(each.link, record.links.size())) say("a transfer's link is not in the record");
    if (each.start < 0 || each.end < each.start) say("a transfer's times run backwards");
  }
  return found;
}

}  // namespace regatta::trace
