// Which tasks wait for which, in a list and from list to list: what StarPU concludes from the same
// accesses.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tasks/task_list.h"

namespace regatta {

// Which tasks of a list wait for which of the same list. Alike in every step.
struct InnerEdges {
  std::vector<std::uint32_t> waits;                    // by task: how many tasks it waits for
  std::vector<std::vector<std::uint32_t>> successors;  // by task: those that wait for it, in order
};

class Dependencies {
 public:
  // A task, and one that must end before it.
  using Edge = std::pair<std::int64_t, std::int64_t>;

  // Lists come in the order of their submission; `step` chooses among a buffer's copies. The
  // list's tasks get the numbers `first_id`, first_id + 1, ... Edges come by task; each once.
  // The list stays where it is.
  std::vector<Edge> follow(const TaskList& list, std::size_t step, std::int64_t first_id);
  // The same into `edges`, for whoever follows many lists: its memory is used again.
  void follow(const TaskList& list, std::size_t step, std::int64_t first_id,
              std::vector<Edge>& edges);
  // Only edges to tasks of lists before; inner() has the others.
  void follow_outer(const TaskList& list, std::size_t step, std::int64_t first_id,
                    std::vector<Edge>& edges);
  const InnerEdges& inner(const TaskList& list) { return known(list).inner; }
  // Tasks with smaller numbers have ended: no task has to wait for them.
  void forget_before(std::int64_t id);

 private:
  // The latest tasks that accessed a copy of a buffer.
  struct Accessors {
    std::vector<std::int64_t> writers, readers;  // readers of what the writers left
    std::vector<std::int64_t> before;            // tasks that those that reduce into it wait for
    bool reducing = false;
  };
  // How a list uses a buffer. Its tasks are numbered from 0.
  struct Use {
    struct Opening {
      std::uint32_t task;
      Mode mode;
    };
    // Accesses up to the first one that writes: only these can wait for tasks of lists before.
    std::vector<Opening> openings;
    bool written = false;  // the last opening writes: then `last` does not depend on lists before
    Accessors last;
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
