// The node's policy (tasks/policy.h) as a scheduling policy of StarPU: `--scheduler regatta`.
#pragma once

#include "tasks/policy.h"

struct starpu_sched_policy;

namespace regatta {

// To be handed to StarPU when it starts. Our tasks carry their TaskRun in sched_data; a GPU's come
// here only where the plan gives them turns, and tasks that StarPU makes by itself go before ours.
// `crowded`: no CPU is left for the thread that submits, so workers that wait must make room.
starpu_sched_policy* scheduling_policy(bool crowded);

// StarPU refused a task with this place: its worker's later turns do not wait for it.
void skip_turn(const FixedPlace& place);

}  // namespace regatta
