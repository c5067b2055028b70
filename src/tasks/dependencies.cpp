#include "tasks/dependencies.h"

#include <algorithm>

namespace regatta {
namespace {

void sort_once(std::vector<Dependencies::Edge>& edges) {
  std::ranges::sort(edges);
  const auto twice = std::ranges::unique(edges);
  edges.erase(twice.begin(), twice.end());
}

void assign_shifted(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from,
                    std::int64_t by) {
  to.assign(from.begin(), from.end());
  for (std::int64_t& each : to) each += by;
}

}  // namespace

template <class WaitFor>
void Dependencies::access(Accessors& buffer, Mode mode, std::int64_t id, const WaitFor& wait_for) {
  switch (mode) {
    case Mode::read:
      std::ranges::for_each(buffer.writers, wait_for);
      buffer.readers.push_back(id);
      buffer.reducing = false;
      break;
    case Mode::write:
    case Mode::read_write:
      std::ranges::for_each(buffer.readers.empty() ? buffer.writers : buffer.readers, wait_for);
      buffer.writers.assign(1, id);
      buffer.readers.clear();
      buffer.reducing = false;
      break;
    case Mode::reduce:
    case Mode::write_part:
      // Such tasks do not wait for each other.
      if (!buffer.reducing) {
        buffer.before = buffer.readers.empty() ? buffer.writers : buffer.readers;
        buffer.writers.clear();
        buffer.readers.clear();
        buffer.reducing = true;
      }
      std::ranges::for_each(buffer.before, wait_for);
      buffer.writers.push_back(id);
      break;
  }
}

const Dependencies::KnownList& Dependencies::known(const TaskList& list) {
  const auto found = known_.find(&list);
  return found != known_.end() ? found->second : known_.emplace(&list, learn(list)).first->second;
}

Dependencies::KnownList Dependencies::learn(const TaskList& list) {
  KnownList made;
  for (const Buffer& buffer : list.buffers) {
    const auto [copies, first_time] = first_copies_.try_emplace(
        std::tuple(buffer.kind, buffer.first, buffer.second), copies_.size());
    if (first_time) copies_.resize(copies_.size() + static_cast<std::size_t>(buffer.copies));
    made.first_copy.push_back(copies->second);
  }
  made.uses.resize(list.buffers.size());
  std::vector<Edge> edges;
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    for (const Access& each : list.tasks[t].accesses) {
      const auto id = static_cast<std::int64_t>(t);
      Use& use = made.uses[each.buffer];
      access(use.last, each.mode, id, [&](std::int64_t on) { edges.emplace_back(id, on); });
      if (use.written) continue;
      use.openings.push_back({static_cast<std::uint32_t>(t), each.mode});
      use.written = each.mode == Mode::write || each.mode == Mode::read_write;
    }
  sort_once(edges);
  made.inner.waits.assign(list.tasks.size(), 0);
  made.inner.successors.resize(list.tasks.size());
  for (const auto& [task, on] : edges) {
    ++made.inner.waits[static_cast<std::size_t>(task)];
    made.inner.successors[static_cast<std::size_t>(on)].push_back(static_cast<std::uint32_t>(task));
  }
  return made;
}

void Dependencies::follow_outer(const TaskList& list, std::size_t step, std::int64_t first_id,
                                std::vector<Edge>& edges) {
  edges.clear();
  const KnownList& known = this->known(list);
  for (std::size_t b = 0; b < list.buffers.size(); ++b) {
    const Use& use = known.uses[b];
    const std::size_t copy = step % static_cast<std::size_t>(list.buffers[b].copies);
    Accessors& latest = copies_[known.first_copy[b] + copy];
    for (const auto& [task, mode] : use.openings)
      access(latest, mode, first_id + task, [&, id = first_id + task](std::int64_t on) {
        if (on < first_id) edges.emplace_back(id, on);
      });
    if (!use.written) continue;
    assign_shifted(latest.writers, use.last.writers, first_id);
    assign_shifted(latest.readers, use.last.readers, first_id);
    assign_shifted(latest.before, use.last.before, first_id);
    latest.reducing = use.last.reducing;
  }
  sort_once(edges);
}

std::vector<Dependencies::Edge> Dependencies::follow(const TaskList& list, std::size_t step,
                                                     std::int64_t first_id) {
  std::vector<Edge> edges;
  follow(list, step, first_id, edges);
  return edges;
}

void Dependencies::follow(const TaskList& list, std::size_t step, std::int64_t first_id,
                          std::vector<Edge>& edges) {
  follow_outer(list, step, first_id, edges);
  const InnerEdges& inner = this->inner(list);
  for (std::size_t on = 0; on < inner.successors.size(); ++on)
    for (const std::uint32_t task : inner.successors[on])
      edges.emplace_back(first_id + task, first_id + static_cast<std::int64_t>(on));
  sort_once(edges);
}

void Dependencies::forget_before(std::int64_t id) {
  for (Accessors& copy : copies_)
    for (std::vector<std::int64_t>* tasks : {&copy.writers, &copy.readers, &copy.before})
      std::erase_if(*tasks, [&](std::int64_t each) { return each < id; });
}

}  // namespace regatta
