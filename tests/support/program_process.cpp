#include "support/program_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "support/places.h"

extern char** environ;

namespace regatta {

ProgramProcess::ProgramProcess(std::vector<std::string> arguments,
                               const std::filesystem::path& said) {
  arguments.insert(arguments.begin(), regatta_program());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, said.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
  // The process that started the tests may ignore these, as nohup and & in a script do.
  sigset_t heard;
  sigemptyset(&heard);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&heard, number);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &heard);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int code =
      ::posix_spawn(&process_, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw std::runtime_error("cannot start " + arguments[0]);
}

ProgramProcess::~ProgramProcess() {
  if (!status_) signal(SIGKILL);
  collect(0);
}

void ProgramProcess::signal(int number) const { ::kill(process_, number); }

int ProgramProcess::wait() {
  collect(0);
  return status_.value();
}

bool ProgramProcess::ended() {
  collect(WNOHANG);
  return status_.has_value();
}

bool ProgramProcess::catches(int number) const {
  std::ifstream status("/proc/" + std::to_string(process_) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
  return false;
}

void ProgramProcess::collect(int options) {
  int status = 0;
  if (!status_ && ::waitpid(process_, &status, options) == process_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace regatta
