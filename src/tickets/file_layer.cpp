#include "tickets/file_layer.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "platform/machine.h"

namespace regatta::tickets {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const char* what, const fs::path& path, int cause) {
  throw InputError("cannot " + std::string(what) + " '" + path.string() +
                   "': " + std::strerror(cause));
}

// Host names and process numbers come again, in containers too.
std::string random_text() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits)
    throw Error("the system gives no random numbers");
  return std::to_string(bits);
}

// A file beside `path` under a name that no other process uses; it goes when this does.
class Draft {
 public:
  Draft(const fs::path& path, const std::string& bytes)
      : path_(path.string() + ".part-" + host_name() + "-" + std::to_string(::getpid()) + "-" +
              random_text()) {
    const Descriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file) fail("create", path, errno);
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t wrote = ::write(file.get(), bytes.data() + at, bytes.size() - at);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) drop_and_fail(path);
      at += static_cast<std::size_t>(wrote);
    }
    if (::fsync(file.get()) != 0 && errno != EINVAL) drop_and_fail(path);
  }
  ~Draft() { ::unlink(path_.c_str()); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const fs::path& path() const { return path_; }
  bool linked() const {
    struct stat about {};
    return ::stat(path_.c_str(), &about) == 0 && about.st_nlink > 1;
  }

 private:
  [[noreturn]] void drop_and_fail(const fs::path& path) {
    const int cause = errno;
    ::unlink(path_.c_str());
    fail("write", path, cause);
  }

  fs::path path_;
};

}  // namespace

std::optional<std::string> DiskLayer::read(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file) fail("read", path, errno);
  std::string bytes;
  char block[4096];
  while (true) {
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

bool DiskLayer::create(const fs::path& path, const std::string& bytes) {
  const Draft draft(path, bytes);
  const int code = ::link(draft.path().c_str(), path.c_str());
  const int cause = errno;
  if (code != 0 && !draft.linked()) {
    if (cause == EEXIST) return false;
    fail("create", path, cause);
  }
  sync_folder(path.parent_path());
  return true;
}

void DiskLayer::replace(const fs::path& path, const std::string& bytes) { write_file(path, bytes); }

std::vector<std::string> DiskLayer::list(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (!is_unfinished(at->path())) names.push_back(at->path().filename().string());
  return names;
}

void DiskLayer::make_folder(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) throw InputError("cannot create '" + path.string() + "': " + code.message());
}

Seconds DiskLayer::now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return Seconds(static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec));
}

}  // namespace regatta::tickets
