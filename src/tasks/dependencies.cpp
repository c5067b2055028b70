#include "tasks/dependencies.h"

#include <algorithm>

namespace regatta {

// Looked up once per list, so that following a step costs little.
const std::vector<std::size_t>& Dependencies::places_of(const TaskList& list) {
  const auto [found, fresh] = known_.try_emplace(&list);
  if (!fresh) return found->second;
  for (const Buffer& buffer : list.buffers) {
    const auto [number, first_time] =
        numbers_.try_emplace(std::tuple(buffer.kind, buffer.first, buffer.second), places_.size());
    if (first_time) places_.resize(places_.size() + static_cast<std::size_t>(buffer.copies));
    found->second.push_back(number->second);
  }
  return found->second;
}

std::vector<Dependencies::Edge> Dependencies::follow(const TaskList& list, std::size_t step,
                                                     std::int64_t first_id) {
  std::vector<Edge> edges;
  follow(list, step, first_id, edges);
  return edges;
}

void Dependencies::follow(const TaskList& list, std::size_t step, std::int64_t first_id,
                          std::vector<Edge>& edges) {
  edges.clear();
  for (std::size_t t = 0; t < list.tasks.size(); ++t)
    for (const std::int64_t each : follow_task(list, step, first_id, t))
      edges.emplace_back(first_id + static_cast<std::int64_t>(t), each);
}

const std::vector<std::int64_t>& Dependencies::follow_task(const TaskList& list, std::size_t step,
                                                           std::int64_t first_id,
                                                           std::size_t task) {
  if (&list != list_) {
    first_copy_ = &places_of(list);
    list_ = &list;
  }
  const std::int64_t id = first_id + static_cast<std::int64_t>(task);
  on_.clear();
  if (list.submits_itself()) {
    if (submitter_ >= 0) on_.push_back(submitter_);
    if (submits(list.tasks[task])) submitter_ = id;
  }
  for (const Access& access : list.tasks[task].accesses) {
    const auto copies = static_cast<std::size_t>(list.buffers[access.buffer].copies);
    Place& place = places_[(*first_copy_)[access.buffer] + step % copies];
    const auto wait_for = [&](const std::vector<std::int64_t>& tasks) {
      on_.insert(on_.end(), tasks.begin(), tasks.end());
    };
    switch (access.mode) {
      case Mode::read:
        wait_for(place.writers);
        place.readers.push_back(id);
        place.reducing = false;
        break;
      case Mode::write:
      case Mode::read_write:
        wait_for(place.readers.empty() ? place.writers : place.readers);
        place.writers.assign(1, id);
        place.readers.clear();
        place.reducing = false;
        break;
      case Mode::reduce:
        // Tasks that reduce into a buffer do not wait for each other.
        if (!place.reducing) {
          place.before = place.readers.empty() ? place.writers : place.readers;
          place.writers.clear();
          place.readers.clear();
          place.reducing = true;
        }
        wait_for(place.before);
        place.writers.push_back(id);
        break;
    }
  }
  std::ranges::sort(on_);
  const auto twice = std::ranges::unique(on_);
  on_.erase(twice.begin(), twice.end());
  return on_;
}

void Dependencies::forget_before(std::int64_t id) {
  for (Place& place : places_)
    for (std::vector<std::int64_t>* tasks : {&place.writers, &place.readers, &place.before})
      std::erase_if(*tasks, [&](std::int64_t each) { return each < id; });
}

}  // namespace regatta
