// Which tasks wait for which, from list to list: what StarPU concludes from the same accesses, and
// whom those wait for that other tasks submit.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tasks/task_list.h"

namespace regatta {

class Dependencies {
 public:
  // A task, and one that must end before it.
  using Edge = std::pair<std::int64_t, std::int64_t>;

  // Lists come in the order of their submission; `step` chooses among a buffer's copies. The
  // list's tasks get the numbers `first_id`, first_id + 1, ... Edges come by task; each once.
  std::vector<Edge> follow(const TaskList& list, std::size_t step, std::int64_t first_id);
  // The same into `edges`, for whoever follows many lists: its memory is used again.
  void follow(const TaskList& list, std::size_t step, std::int64_t first_id,
              std::vector<Edge>& edges);
  // One task after the other, by who would not wait for the rest of a list: whom it waits for,
  // until the next call.
  const std::vector<std::int64_t>& follow_task(const TaskList& list, std::size_t step,
                                               std::int64_t first_id, std::size_t task);
  // Tasks with smaller numbers have ended: no task has to wait for them.
  void forget_before(std::int64_t id);

 private:
  struct Place {                                 // a copy of a buffer
    std::vector<std::int64_t> writers, readers;  // readers of what the writers left
    std::vector<std::int64_t> before;            // what those that reduce into it wait for
    bool reducing = false;
  };
  const std::vector<std::size_t>& places_of(const TaskList& list);

  std::map<std::tuple<BufferKind, std::uint32_t, std::uint32_t>, std::size_t> numbers_;
  std::map<const TaskList*, std::vector<std::size_t>> known_;  // by buffer: its first copy
  const TaskList* list_ = nullptr;  // whose buffers these are the first copies of
  const std::vector<std::size_t>* first_copy_ = nullptr;
  std::vector<Place> places_;
  std::int64_t submitter_ = -1;   // the latest task that submits others
  std::vector<std::int64_t> on_;  // of the task that is looked at
};

}  // namespace regatta
