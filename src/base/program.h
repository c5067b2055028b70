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

// Environment variables ("NAME=value") of this process with `changes` in place of those of the same
// names.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

// Runs arguments[0], looked up in PATH, with an empty input, and waits for it; the variables in
// `changes` ("NAME=value") differ from this process's. Throws InputError if there is no such
// program.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& changes = {});

// The texts as execve() and its kin take them: pointers into `texts`, the last one null.
std::vector<char*> pointers_to(const std::vector<std::string>& texts);

}  // namespace regatta
