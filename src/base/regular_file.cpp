#include "base/regular_file.h"

#include <system_error>

#include "base/error.h"

namespace regatta {
namespace fs = std::filesystem;

void require_regular_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw InputError("cannot read '" + path.string() + "': it is " +
                   (fs::is_directory(status) ? "a folder" : "not a regular file"));
}

}  // namespace regatta
