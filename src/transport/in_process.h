// Ranks that are objects of one process, for tests: what is sent is copied into a queue.
#pragma once

#include <memory>
#include <vector>

#include "transport/transport.h"

namespace regatta {

// One transport for each of `size` ranks; they may be used by different threads.
std::vector<std::shared_ptr<Transport>> in_process_ranks(int size);

}  // namespace regatta
