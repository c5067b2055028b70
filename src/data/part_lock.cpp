#include "data/part_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/host_name.h"

namespace regatta {
namespace {

std::string said_in(const std::filesystem::path& file) {
  try {
    const std::string text = read_file(file);
    return text.empty() ? "another process" : text;
  } catch (const InputError&) {
    return "another process";
  }
}

// The name still leads to the open file: nobody removed it in between.
bool is_still(const Descriptor& open, const std::filesystem::path& file) {
  struct stat mine {
  }, named{};
  return ::fstat(open.get(), &mine) == 0 && ::stat(file.c_str(), &named) == 0 &&
         mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

// Tries for a tenth of a second: a process that only asks who makes the part holds a shared lock
// for some microseconds. False: errno says why.
bool locked(int file) {
  constexpr int tries = 10;
  for (int i = 0; i < tries; ++i) {
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  errno = EWOULDBLOCK;
  return false;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  while (folder_ && ::flock(folder_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

PartLock::PartLock(const std::filesystem::path& file, const std::string& what) : file_(file) {
  do {
    lock_ = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock_) throw InputError("cannot create '" + file.string() + "': " + std::strerror(errno));
    if (locked(lock_.get())) continue;
    if (errno == EWOULDBLOCK)
      throw InputError(what + " is being made by " + said_in(file) + ": wait for it");
    break;
  } while (!is_still(lock_, file));
  const std::string holder = "process " + std::to_string(::getpid()) + " on " + host_name();
  if (::ftruncate(lock_.get(), 0) != 0 ||
      ::pwrite(lock_.get(), holder.data(), holder.size(), 0) != std::ssize(holder))
    throw InputError("cannot write '" + file.string() + "': " + std::strerror(errno));
}

PartLock::~PartLock() {
  if (lock_ && is_still(lock_, file_)) ::unlink(file_.c_str());
}

std::optional<std::string> PartLock::holder(const std::filesystem::path& file) {
  const Descriptor open(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!open || ::flock(open.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return std::nullopt;
  return said_in(file);
}

}  // namespace regatta
