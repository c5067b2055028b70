// Runs other programs (curl, npm, tar) without a shell, so that no file name is ever parsed by one.
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct ProgramResult {
  int status = 0;      // exit code, or 128 + signal
  std::string output;  // what it wrote to stdout and stderr, in order

  // Where programs say what went wrong; help and logs follow.
  std::string first_line() const;
};

// Runs arguments[0], looked up in PATH, with an empty input, and waits for it. Throws InputError if
// there is no such program.
ProgramResult run_program(const std::vector<std::string>& arguments);

}  // namespace regatta
