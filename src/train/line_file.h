// Lines that follow each other in a file.
#pragma once

#include <filesystem>
#include <string>

#include "base/descriptor.h"

namespace regatta {

// What cannot be written now, because the disk is full, is
// kept and goes first the next time: a hole in the record is no reason to end a run.
class LineFile {
 public:
  explicit LineFile(std::filesystem::path path);  // appends; throws InputError

  void add(const std::string& line);
  void sync();  // throws InputError if lines are left over

 private:
  bool flush();

  std::filesystem::path path_;
  Descriptor file_;
  std::string pending_;
};

}  // namespace regatta
