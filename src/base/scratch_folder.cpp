#include "base/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace regatta {
namespace fs = std::filesystem;

ScratchFolder::ScratchFolder(const std::string& purpose) {
  std::error_code code;
  const fs::path place = fs::temp_directory_path(code);
  if (code)
    throw InputError("there is no folder for temporary files (" + code.message() +
                     "): let TMPDIR name one");
  std::string pattern = (place / ("regatta-" + purpose + "-XXXXXX")).string();
  if (!::mkdtemp(pattern.data()))
    throw InputError("cannot make a folder in '" + place.string() + "' (" + std::strerror(errno) +
                     "): let TMPDIR name another place");
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace regatta
