#include "app/profiles.h"

#include "base/error.h"
#include "tune/stored_profile.h"

namespace regatta::app {

std::shared_ptr<const Profile> own_profile() {
  const std::shared_ptr<const Profile> found = stored_profile();
  return found->empty() ? nullptr : found;
}

sim::Profiles profiles_for(const Platform& platform, const std::filesystem::path& folder) {
  sim::Profiles profiles;
  for (const PlatformNode& node : platform.nodes)
    for (const PlatformGroup& group : node.groups) {
      const std::string& name = group.costs.profile;
      if (name.empty() || profiles.contains(name)) continue;
      profiles[name] = name == here ? own_profile()
                                    : std::make_shared<const Profile>(
                                          profile_from_json(read_json(folder / name)).profile);
      if (!profiles[name])
        throw InputError("platform '" + platform.name +
                         "' wants the profile of this machine, and "
                         "nothing was measured here: run regatta calibrate");
    }
  return profiles;
}

}  // namespace regatta::app
