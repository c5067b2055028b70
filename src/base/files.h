// Files: written so that a reader sees the old file or the new one, never half; and read whole.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace regatta {

// A regular file under a name of its own beside `path`, which takes the place of `path` when it is
// whole. Symbolic links are followed: the file they lead to is replaced, and they stay. The new
// file has the permissions of the old one.
class Replacement {
 public:
  // Makes the file, empty. Throws InputError that names the path and the cause, also where `path`
  // is something that cannot be replaced: a folder, a device, a FIFO, a socket.
  explicit Replacement(const std::filesystem::path& path);
  ~Replacement();  // without commit() nothing is left of it
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  const std::filesystem::path& aside() const { return aside_; }
  int descriptor() const { return file_.get(); }
  void commit();  // throws InputError

 private:
  std::string name_;  // as the user wrote it
  std::filesystem::path target_, aside_;
  Descriptor file_;
};

// Writes `path`: regular files as a Replacement; devices and FIFOs are opened and written as they
// are; "-" and /dev/stdout are standard output, and names such as /dev/fd/3 a descriptor that this
// process has open. Throws InputError that names the path and the cause (full disk, missing folder,
// no permission), leaving a regular file that was there before.
void write_file(const std::filesystem::path& path, std::string_view bytes);
// The same for what is too large to be held in memory.
void write_file(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

// True for "-", /dev/stdout and other names of descriptor 1.
bool is_standard_output(const std::filesystem::path& path);

// Makes names that were created, replaced or removed in `folder` survive a power cut.
void sync_folder(const std::filesystem::path& folder);

// True for the name of a file or folder that is being written, or was when its writer died.
bool is_unfinished(const std::filesystem::path& path);

// Throws what write_file would say, before there is anything to write: for results of long work.
void require_writable(const std::filesystem::path& path);

// The whole file; throws InputError that names it.
std::string read_file(const std::filesystem::path& path);

// $REGATTA_CACHE, else $XDG_CACHE_HOME/regatta, else ~/.cache/regatta. Not created.
std::filesystem::path cache_folder();

std::string sha256_hex(std::string_view bytes);
std::string sha256_of_file(const std::filesystem::path& path);  // read piece by piece

// The known name nearest to `name` by edit distance, as " (did you mean 'x'?)"; empty if none is
// near. For errors about unknown names.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace regatta
