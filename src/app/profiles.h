// Profiles by the names that platforms give them.
#pragma once

#include <filesystem>
#include <memory>

#include "platform/platform.h"
#include "sim/fleet_plan.h"

namespace regatta::app {

inline constexpr const char* here = "here";  // this machine's own profile

// Null if nothing was measured on this machine.
std::shared_ptr<const Profile> own_profile();

// Every profile that a platform names: "here", or a file, seen from the platform's folder.
sim::Profiles profiles_for(const Platform& platform, const std::filesystem::path& folder);

}  // namespace regatta::app
