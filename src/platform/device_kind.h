// The kinds of devices that can compute.
#pragma once

#include <optional>
#include <string_view>

namespace regatta {

enum class DeviceKind { cpu, cuda };

constexpr std::string_view device_kind_name(DeviceKind kind) {
  return kind == DeviceKind::cpu ? "cpu" : "cuda";
}

constexpr std::optional<DeviceKind> device_kind_named(std::string_view name) {
  if (name == "cpu") return DeviceKind::cpu;
  if (name == "cuda") return DeviceKind::cuda;
  return std::nullopt;
}

}  // namespace regatta
