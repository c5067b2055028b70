#include "support/places.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

fs::path own_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

}  // namespace

fs::path test_files() {
  const fs::path packed = own_folder().parent_path() / REGATTA_PACKED_FILES;
  return fs::exists(packed) ? packed : fs::path(REGATTA_SOURCE_DIR);
}

fs::path regatta_program() { return own_folder() / "regatta"; }

}  // namespace regatta
