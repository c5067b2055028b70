// Where gradients travel between ranks, a task that computes them cannot also take the step.
#pragma once

#include "tasks/placement.h"

namespace regatta {

// The list with every task cut in two before its first measuring or updating of a bucket; what
// comes after waits for the exchange of its buckets.
TaskList split_updates(const TaskList& list);

// What the plan fixes of the split list's tasks; `whole` is the list before. Tasks that come after
// an exchange have a worker, but no turn: two ranks that wait for each other's gradients in
// different orders would wait for ever.
std::vector<FixedPlace> split_places(const Blueprint& blueprint, const TaskList& whole,
                                     const TaskList& split);

// The buckets whose exchange a task waits for.
std::vector<BucketId> awaited_buckets(const Task& task);

}  // namespace regatta
