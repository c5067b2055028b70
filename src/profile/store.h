// The profile on disk: one JSON file per kind of machine, shared by all runs on it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/json.h"
#include "profile/profile.h"

namespace regatta {

// To be raised whenever our own kernels change their speed, or what is measured its meaning: what
// was measured before is forgotten.
constexpr int kernels_version = 13;

// What a profile holds for.
struct MachineMark {
  std::string cpu;
  int cores = 1;
  std::vector<std::string> gpus;
  std::map<std::string, std::string> libraries;  // name -> version
  int kernels = kernels_version;

  bool operator==(const MachineMark&) const = default;
};
// The mark of this machine.
MachineMark machine_mark(std::map<std::string, std::string> libraries);

// $REGATTA_PROFILES, else profiles/ in the cache folder.
std::filesystem::path profile_folder();

Json to_json(const Profile& profile, const MachineMark& mark);
struct StoredProfile {
  Profile profile;
  MachineMark mark;
};
StoredProfile profile_from_json(const Json& json);  // throws InputError

class ProfileStore {
 public:
  explicit ProfileStore(MachineMark mark, std::filesystem::path folder = profile_folder());

  const MachineMark& mark() const { return mark_; }
  const std::filesystem::path& file() const { return file_; }

  // What is known of this machine; empty if nothing is. A file that is damaged, or of another
  // version or other libraries, counts as nothing: `remark` then says so in one line.
  Profile load(std::string* remark = nullptr) const;

  // Adds a session to what the file holds by now, so that runs side by side lose nothing. Throws
  // InputError if the file cannot be written.
  Profile learn(std::span<const Observation> session) const;

 private:
  MachineMark mark_;
  std::filesystem::path file_;
};

}  // namespace regatta
