// What a task is called in a record: what it does, and to which parts of the plan.
#pragma once

#include <cstdint>
#include <string>

#include "tasks/task_list.h"

namespace regatta {

struct TaskLabel {
  std::string phases;  // in order: "forward+deliver+backward"
  std::int32_t segment = -1, part = -1, chunk = -1, bucket = -1;  // -1: does not apply
};
TaskLabel label_of(const Task& task);

}  // namespace regatta
