#include "data/part_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
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

// Writes this process and its machine into the lock's file, so that others can name the holder.
bool note_holder(const Descriptor& open) {
  const std::string holder = "process " + std::to_string(::getpid()) + " on " + host_name();
  return ::ftruncate(open.get(), 0) == 0 &&
         ::pwrite(open.get(), holder.data(), holder.size(), 0) == std::ssize(holder);
}

// Removes the file while its lock is held, if the folder still has that file.
void remove_lock(const Descriptor& open, const std::filesystem::path& file) {
  if (open && is_still(open, file)) ::unlink(file.c_str());
}

// Tries to lock a file, `tries` times at intervals of 10 ms. More than once, because a process that
// only asks who makes a part holds a shared lock for some microseconds. False: errno says why.
bool locked(int file, int tries = 10) {
  for (int i = 0; i < tries; ++i) {
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  errno = EWOULDBLOCK;
  return false;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(folder / ".in-use") {
  constexpr int one_second = 100;  // tries at intervals of 10 ms
  do {
    lock_ = Descriptor(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock_) return;
    if (locked(lock_.get(), one_second)) continue;
    if (errno != EWOULDBLOCK) break;  // the file system has no locks
    std::cerr << "waiting for " << said_in(file_) << ", which begins or joins parts in '"
              << folder.string() << "'\n";
    while (::flock(lock_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  } while (!is_still(lock_, file_));
  note_holder(lock_);  // if that fails, messages cannot name the holder
}

FolderLock::~FolderLock() { remove_lock(lock_, file_); }

PartLock::PartLock(const std::filesystem::path& file, const std::string& what) : file_(file) {
  do {
    lock_ = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock_) throw InputError("cannot create '" + file.string() + "': " + std::strerror(errno));
    if (locked(lock_.get())) continue;
    if (errno == EWOULDBLOCK)
      throw InputError(what + " is being made by " + said_in(file) + ": wait for it");
    break;
  } while (!is_still(lock_, file));
  if (!note_holder(lock_))
    throw InputError("cannot write '" + file.string() + "': " + std::strerror(errno));
}

PartLock::~PartLock() { remove_lock(lock_, file_); }

std::optional<std::string> PartLock::holder(const std::filesystem::path& file) {
  const Descriptor open(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!open || ::flock(open.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return std::nullopt;
  return said_in(file);
}

}  // namespace regatta
