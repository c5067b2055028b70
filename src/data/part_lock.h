// Locks of a preparation's folder. The kernel releases them when their process ends, also when it
// is killed. On a file system without locks nothing is locked.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/descriptor.h"

namespace regatta {

// Held while a part is begun and while parts are joined, so that neither happens within the other.
// A file of the folder, because NFS locks only files that are open for writing.
class FolderLock {
 public:
  // Waits until it is free, and says on standard error for whom if that takes long.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();  // removes the file
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path file_;
  Descriptor lock_;
};

// Lets only one process at a time make a given part.
class PartLock {
 public:
  // Locks `file`. If another process holds the lock, throws InputError that names `what`
  // and that process. Where there are no locks two processes may make the same files twice, with
  // the same bytes.
  PartLock(const std::filesystem::path& file, const std::string& what);
  ~PartLock();  // removes the file
  PartLock(const PartLock&) = delete;
  PartLock& operator=(const PartLock&) = delete;

  // The process that holds the lock of `file` now, as "process 12 on HOST"; none: no process does.
  static std::optional<std::string> holder(const std::filesystem::path& file);

 private:
  std::filesystem::path file_;
  Descriptor lock_;
};

}  // namespace regatta
