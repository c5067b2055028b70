#include "train/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace regatta {

LineFile::LineFile(std::filesystem::path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_) throw InputError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

bool LineFile::flush() {
  while (!pending_.empty()) {
    const ssize_t wrote = ::write(file_.get(), pending_.data(), pending_.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    pending_.erase(0, static_cast<std::size_t>(wrote));
  }
  return true;
}

void LineFile::add(const std::string& line) {
  pending_ += line + '\n';
  flush();
}

void LineFile::sync() {
  if (!flush() || (::fsync(file_.get()) != 0 && errno != EINVAL))
    throw InputError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

}  // namespace regatta
