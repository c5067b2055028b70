// Which tasks wait for which, within a list and between lists, derived from the tasks' accesses by
// the same rules as StarPU's implicit data dependencies.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tasks/task_list.h"

namespace regatta {

// Which tasks of a list wait for which tasks of the same list. The same in every step.
struct InnerEdges {
  std::vector<std::uint32_t> waits;                    // by task: how many tasks it waits for
  std::vector<std::vector<std::uint32_t>> successors;  // by task: those that wait for it, in order
};

class Dependencies {
 public:
  // A task, and one that must end before it.
  using Edge = std::pair<std::int64_t, std::int64_t>;

  // All edges of the next submitted list, sorted by task, each once. Called in the order of
  // submission. `step` chooses among a buffer's copies (Buffer::copies). The list's tasks get the
  // ids `first_id`, first_id + 1, ... The list is known by its address, which must not change.
  std::vector<Edge> follow(const TaskList& list, std::size_t step, std::int64_t first_id);
  // The same into `edges`, whose memory is reused from call to call.
  void follow(const TaskList& list, std::size_t step, std::int64_t first_id,
              std::vector<Edge>& edges);
  // Only edges to tasks of earlier lists; inner() has those within the list.
  void follow_outer(const TaskList& list, std::size_t step, std::int64_t first_id,
                    std::vector<Edge>& edges);
  const InnerEdges& inner(const TaskList& list) { return known(list).inner; }
  // Tasks with ids smaller than `id` have ended: later edges leave them out.
  void forget_before(std::int64_t id);

 private:
  // The latest tasks that accessed a copy of a buffer.
  struct Accessors {
    std::vector<std::int64_t> writers, readers;  // readers: tasks that read after the writers
    std::vector<std::int64_t> before;  // if `reducing`: tasks that each of the writers waits for
    bool reducing = false;  // the writers reduce into it, or each write a part, in any order
  };
  // How a list uses a buffer. Tasks are numbered by their position in the list.
  struct Use {
    struct Opening {
      std::uint32_t task;
      Mode mode;
    };
    // Accesses up to the first one that writes: only these can wait for tasks of earlier lists.
    std::vector<Opening> openings;
    // The list writes the buffer (reducing into it does not count): `last` does not depend on
    // earlier lists.
    bool written = false;
    Accessors last;  // after the whole list
  };
  struct KnownList {
    std::vector<std::size_t> first_copy;  // by buffer: where its copies begin in copies_
    std::vector<Use> uses;                // by buffer
    InnerEdges inner;
  };
  // Calls `wait_for(task)` for each task that an access by task `id` must wait for.
  template <class WaitFor>
  static void access(Accessors& buffer, Mode mode, std::int64_t id, const WaitFor& wait_for);
  const KnownList& known(const TaskList& list);
  KnownList learn(const TaskList& list);

  std::map<std::tuple<BufferKind, std::uint32_t, std::uint32_t>, std::size_t> first_copies_;
  std::map<const TaskList*, KnownList> known_;
  std::vector<Accessors> copies_;
};

}  // namespace regatta
