// Devices of this machine, as --devices names them.
#pragma once

#include <string>
#include <vector>

#include "platform/device_kind.h"

namespace regatta::app {

// "cpu", "cuda", "cpu,cuda", or "auto": the GPU where one can be used, else the CPUs. Throws
// InputError.
std::vector<DeviceKind> devices_here(const std::string& text);

}  // namespace regatta::app
