#include "app/devices.h"

#include <filesystem>

#include "base/json_reader.h"
#include "exec/cuda_runner.h"

namespace regatta::app {
namespace {

// The files by which programs reach NVIDIA's driver, on Linux itself and under Windows. Where
// neither exists there is no GPU, and asking CUDA for one would only load its libraries.
bool has_nvidia_driver() {
  std::error_code failure;  // a file that cannot be looked at is not there
  return std::filesystem::exists("/dev/nvidiactl", failure) ||
         std::filesystem::exists("/dev/dxg", failure);
}

}  // namespace

void set_devices(const std::string& text, PlanOptions& plan) {
  if (text != "auto") {
    plan.devices = devices_named(text);
    return;
  }
  const bool gpu = has_nvidia_driver() && why_not([] { require_cuda(); }).empty();
  plan.devices = {gpu ? DeviceKind::cuda : DeviceKind::cpu};
  plan.devices_open = gpu;
  if (!gpu) plan.loaders.reset();  // loaders feed a GPU
}

}  // namespace regatta::app
