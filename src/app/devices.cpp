#include "app/devices.h"

#include "base/json_reader.h"
#include "exec/cuda_runner.h"
#include "plan/make_plan.h"

namespace regatta::app {

std::vector<DeviceKind> devices_here(const std::string& text) {
  if (text != "auto") return devices_named(text);
  const bool gpu = why_not([] { require_cuda(); }).empty();
  return {gpu ? DeviceKind::cuda : DeviceKind::cpu};
}

}  // namespace regatta::app
