// Carries out a task's actions, one after another, on whatever device it is given.
#pragma once

#include "exec/device.h"
#include "exec/frame.h"
#include "exec/submission.h"

namespace regatta {

void carry_out(const Blueprint& blueprint, const Task& task, Submission& submission,
               const Frame& frame, Device& device, TaskTimes* times = nullptr);

}  // namespace regatta
