#include "sim/aside.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/descriptor.h"

namespace regatta::sim {
namespace {

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // nobody listens any more
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// The first byte tells a result from an error, and a user's mistake from ours.
[[noreturn]] void be_child(int out, const std::function<std::string()>& function) {
  std::string answer;
  try {
    answer = "r" + function();
  } catch (const InputError& error) {
    answer = std::string("i") + error.what();
  } catch (const std::exception& error) {
    answer = std::string("e") + error.what();
  }
  write_all(out, answer);
  // What the parent had open is not the child's to flush or close.
  _exit(0);
}

}  // namespace

std::string run_aside(const std::function<std::string()>& function) {
  int ends[2];
  if (::pipe(ends) != 0) throw Error(std::string("no pipe: ") + std::strerror(errno));
  const Descriptor in(ends[0]);
  Descriptor out(ends[1]);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) throw Error(std::string("no process to simulate in: ") + std::strerror(errno));
  if (child == 0) {
    // The child ends with its parent, also if the parent was killed before this line.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) _exit(1);  // it was, before that
    be_child(out.get(), function);
  }
  out = Descriptor();
  std::string answer;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t got = ::read(in.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw Error(std::string("the simulation was ended: ") + ::strsignal(WTERMSIG(status)));
  if (answer.empty() || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
    throw Error("the simulation ended without a result");
  if (answer.front() == 'i') throw InputError(answer.substr(1));
  if (answer.front() == 'e') throw Error(answer.substr(1));
  return answer.substr(1);
}

}  // namespace regatta::sim
