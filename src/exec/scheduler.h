// The node's policy (tasks/policy.h) as a scheduling policy of StarPU: `--scheduler regatta`.
#pragma once

struct starpu_sched_policy;

namespace regatta {

struct TaskRun;

// To be handed to StarPU when it starts. Our tasks carry their TaskRun in sched_data; a GPU's come
// here only where the plan gives them turns, and tasks that StarPU makes by itself go before ours.
// `crowded`: no CPU is left for the thread that submits, so workers that wait must make room.
starpu_sched_policy* scheduling_policy(bool crowded);

// A task that was held back at its gate (exec/gates.h) has nothing left to wait for.
void now_ready(const TaskRun& run);

}  // namespace regatta
