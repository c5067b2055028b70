// One process at a time makes a part of a preparation: it holds the lock of a file in the folder.
// The kernel lets go when the process ends, however it ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/descriptor.h"

namespace regatta {

class PartLock {
 public:
  // Throws InputError that names `what` and the process that holds the lock. Where the file system
  // has no locks, it goes on without one: files are then made twice, with the same bytes.
  PartLock(const std::filesystem::path& file, const std::string& what);
  ~PartLock();  // removes the file
  PartLock(const PartLock&) = delete;
  PartLock& operator=(const PartLock&) = delete;

  // "process 12 on host": the one that holds the lock of `file` now.
  static std::optional<std::string> holder(const std::filesystem::path& file);

 private:
  std::filesystem::path file_;
  Descriptor lock_;
};

}  // namespace regatta
