// The few operations on files and the clock that workers agree by. Tests put a layer in between
// that stalls, loses answers, shows old listings or runs full.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace regatta::tickets {

class FileLayer {
 public:
  virtual ~FileLayer() = default;

  // The whole file, or nothing if there is none. Throws InputError for any other trouble.
  virtual std::optional<std::string> read(const std::filesystem::path& path) = 0;

  // Makes the file with these bytes, whole from the moment it can be seen. False if there is such a
  // file already, which then stays as it is: of all who try, one succeeds. Throws InputError if it
  // cannot be made; then it was not.
  virtual bool create(const std::filesystem::path& path, const std::string& bytes) = 0;

  // Makes the file or replaces it as a whole. Throws InputError.
  virtual void replace(const std::filesystem::path& path, const std::string& bytes) = 0;

  // Names of what is in the folder; none if there is no such folder. May be out of date: nothing
  // that must be right depends on it.
  virtual std::vector<std::string> list(const std::filesystem::path& folder) = 0;

  virtual void make_folder(const std::filesystem::path& path) = 0;  // and its parents

  // A clock of this machine that only runs forward, and stands still while the machine sleeps.
  virtual Seconds now() = 0;
};

// The file system as it is. Files are created with link(), which is atomic on network file systems
// too, and whose answer may be lost there: then the number of links tells whether it was carried
// out.
class DiskLayer : public FileLayer {
 public:
  std::optional<std::string> read(const std::filesystem::path& path) override;
  bool create(const std::filesystem::path& path, const std::string& bytes) override;
  void replace(const std::filesystem::path& path, const std::string& bytes) override;
  std::vector<std::string> list(const std::filesystem::path& folder) override;
  void make_folder(const std::filesystem::path& path) override;
  Seconds now() override;
};

}  // namespace regatta::tickets
