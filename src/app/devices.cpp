#include "app/devices.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/json_reader.h"
#include "exec/cuda_runner.h"

namespace regatta::app {
namespace {

// The files by which programs reach NVIDIA's driver, on Linux itself and under Windows, and the one
// that tells of the driver before the first program has made CUDA create its device. Where none
// exists there is no GPU, and asking CUDA for one would only load its libraries.
bool has_nvidia_driver() {
  return std::ranges::any_of(
      std::array{"/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version"},
      [](const char* file) {
        std::error_code failure;  // a file that cannot be looked at is not there
        return std::filesystem::exists(file, failure);
      });
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
