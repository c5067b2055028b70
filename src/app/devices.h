// Devices of this machine, as --devices names them.
#pragma once

#include <string>

#include "plan/make_plan.h"

namespace regatta::app {

// "cpu", "cuda", "cpu,cuda", or "auto": the CPUs where there is no GPU that can be used, else the
// GPU, and whoever chooses by costs may let cores compute too, or instead. Throws InputError.
void set_devices(const std::string& text, PlanOptions& plan);

}  // namespace regatta::app
