#include "base/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

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

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> variables = changes;
  for (char** each = environ; each && *each; ++each) {
    const std::string_view variable = *each;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    if (std::ranges::none_of(changes, [&](const auto& change) { return change.starts_with(name); }))
      variables.emplace_back(variable);
  }
  return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& changes) {
  const std::vector<std::string> environment = environment_with(changes);
  const std::vector<char*> argv = pointers_to(arguments), variables = pointers_to(environment);

  Pipe output = make_pipe();
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), output.writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), output.writer.get(), STDERR_FILENO);

  pid_t child = 0;
  const int code =
      ::posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), variables.data());
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
