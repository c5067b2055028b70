// A program in a process of its own that does not outlive this one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace regatta::tickets {

class ChildProcess {
 public:
  // Runs arguments[0] with an empty input; what it says is appended to `said`. The variables in
  // `changes` ("NAME=value") differ from this process's. It is in a process group of its own, so
  // that Ctrl-C in a terminal reaches it through its parent alone, and the kernel kills it when its
  // parent is gone. Throws InputError if it cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::filesystem::path& said,
               const std::vector<std::string>& changes = {});
  ~ChildProcess();  // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Its exit code, or 128 + the signal that ended it; nothing while it runs.
  std::optional<int> poll();
  void signal(int number) const;

 private:
  pid_t process_ = -1;
  std::optional<int> status_;
};

}  // namespace regatta::tickets
