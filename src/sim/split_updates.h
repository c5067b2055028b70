// Where gradients travel between ranks, a task that computes them cannot also take the step.
#pragma once

#include "tasks/task_list.h"

namespace regatta::sim {

// The list with every task cut in two before its first measuring or updating of a bucket; what
// comes after waits for the exchange of its buckets.
TaskList split_updates(const TaskList& list);

// The buckets whose exchange a task waits for.
std::vector<BucketId> awaited_buckets(const Task& task);

}  // namespace regatta::sim
