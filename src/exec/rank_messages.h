// The messages between this rank and the others while task lists run.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "exec/travels.h"

namespace regatta {

class RankMessages {
 public:
  // With `spare_cpu`, a CPU is left for the thread that sends and receives.
  RankMessages(const Blueprint& blueprint, const RankOptions& ranks, bool spare_cpu);

  // Starts what a task that travels() sends and receives. Never waits. `data` of the task's
  // accesses is read before this returns. `arrived` is called once, by the thread that receives,
  // with what went wrong or null.
  void start(const TaskRun& run, std::byte* const* data,
             std::function<void(std::exception_ptr failure)> arrived);
  // Makes all other ranks fail with RankFailed.
  void give_up(const std::string& why) noexcept { communicator_.give_up(why); }

 private:
  const Travels travels_;
  Communicator communicator_;
};

}  // namespace regatta
