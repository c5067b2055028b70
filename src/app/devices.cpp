#include "app/devices.h"

#include "base/json_reader.h"
#include "exec/cuda_runner.h"

namespace regatta::app {

void set_devices(const std::string& text, PlanOptions& plan) {
  if (text != "auto") {
    plan.devices = devices_named(text);
    return;
  }
  const bool gpu = why_not([] { require_cuda(); }).empty();
  plan.devices = {gpu ? DeviceKind::cuda : DeviceKind::cpu};
  plan.devices_open = gpu;
}

}  // namespace regatta::app
