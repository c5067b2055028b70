#include "base/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <utility>

#include "base/error.h"

namespace regatta {
namespace {

int reserved = -1;  // standard output while printing goes elsewhere; -1: it does not

bool flush() {
  std::cout.flush();
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

void forget_errors() {
  std::cout.clear();
  std::clearerr(stdout);
}

}  // namespace

void occupy_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0)  // open() takes the lowest free number: this one
      ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void reserve_standard_output() {
  if (reserved >= 0) return;
  flush();
  reserved = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void release_standard_output() {
  if (reserved < 0) return;
  flush();
  forget_errors();  // of standard error, where this text went
  ::dup2(reserved, STDOUT_FILENO);
  ::close(std::exchange(reserved, -1));
}

int standard_output() { return reserved >= 0 ? reserved : STDOUT_FILENO; }

void require_printed() {
  if (flush() || reserved >= 0) return;
  forget_errors();
  throw InputError("cannot write to standard output: it is closed, or its disk is full");
}

}  // namespace regatta
