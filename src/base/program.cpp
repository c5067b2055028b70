#include "base/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"

extern char** environ;

namespace regatta {
namespace {

struct Pipe {
  Descriptor reader, writer;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(std::string("cannot run another program: ") + std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::string read_all(const Descriptor& descriptor) {
  std::string bytes;
  char block[4096];
  while (true) {
    const ssize_t got = ::read(descriptor.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string ProgramResult::first_line() const {
  return output.substr(0, output.find_first_of("\r\n"));
}

ProgramResult run_program(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  Pipe output = make_pipe();
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), output.writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), output.writer.get(), STDERR_FILENO);

  pid_t child = 0;
  const int code = ::posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (code == ENOENT) throw InputError("the program '" + arguments[0] + "' is not installed");
  if (code != 0)
    throw InputError("the program '" + arguments[0] + "' cannot be run: " + std::strerror(code));

  // Our copy must go first: the pipe ends only when its last writer closes it.
  output.writer = Descriptor();
  ProgramResult result;
  result.output = read_all(output.reader);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace regatta
