// A file lock that lets only one process at a time make a given part of a preparation. The kernel
// releases it when the process ends, also when it is killed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/descriptor.h"

namespace regatta {

class PartLock {
 public:
  // Locks `file`. If another process holds the lock, throws InputError that names `what`
  // and that process. On a file system without locks nothing is locked: two processes may then make
  // the same files twice, with the same bytes.
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
