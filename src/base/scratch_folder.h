#pragma once

#include <filesystem>
#include <string>

namespace regatta {

// A new folder among the machine's temporary files that no other process has, whatever its number:
// containers that share /tmp have processes of the same number. It goes when this does.
class ScratchFolder {
 public:
  // `purpose` is part of its name: "regatta-PURPOSE-x3Fk8q". Throws InputError that names the
  // place.
  explicit ScratchFolder(const std::string& purpose);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace regatta
