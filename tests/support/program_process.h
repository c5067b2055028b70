// The program in a process of its own, so that it can be interrupted or killed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

class ProgramProcess {
 public:
  // What it says is appended to `said`.
  ProgramProcess(std::vector<std::string> arguments, const std::filesystem::path& said);
  ~ProgramProcess();  // does not outlive the test
  ProgramProcess(const ProgramProcess&) = delete;
  ProgramProcess& operator=(const ProgramProcess&) = delete;

  void signal(int number) const;
  int wait();  // its exit code, or -N if signal N ended it
  bool ended();
  bool catches(int number) const;  // has a function of its own for this signal

 private:
  void collect(int options);

  pid_t process_ = -1;
  std::optional<int> status_;
};

}  // namespace regatta
