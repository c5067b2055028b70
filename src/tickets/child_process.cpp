#include "tickets/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/program.h"

namespace regatta::tickets {
namespace {

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const std::filesystem::path& said,
                           const std::vector<std::string>& changes) {
  const std::vector<std::string> environment = environment_with(changes);
  const std::vector<char*> argv = pointers_to(arguments), variables = pointers_to(environment);
  const Descriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor output(::open(said.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!output) throw InputError("cannot create '" + said.string() + "': " + std::strerror(errno));
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0)
    throw InputError(std::string("cannot start a process: ") + std::strerror(errno));
  if (process_ > 0) return;
  // Between fork and exec only what is safe in a signal handler may be called.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before that
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  ::dup2(input.get(), STDIN_FILENO);
  ::dup2(output.get(), STDOUT_FILENO);
  ::dup2(output.get(), STDERR_FILENO);
  ::execve(argv[0], argv.data(), variables.data());
  ::_exit(127);
}

ChildProcess::~ChildProcess() {
  if (status_) return;
  signal(SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> ChildProcess::poll() {
  int status = 0;
  if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = code_of(status);
  return status_;
}

void ChildProcess::signal(int number) const {
  if (!status_) ::kill(process_, number);
}

}  // namespace regatta::tickets
