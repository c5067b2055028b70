// The program, called in this process: its exit code and all it said.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/command.h"

namespace regatta {

struct ProgramRun {
  int code = 0;
  std::string out, err;
};

inline ProgramRun run_regatta(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ProgramRun run;
  run.code = app::run_program(pointers);
  run.out = testing::internal::GetCapturedStdout();
  run.err = testing::internal::GetCapturedStderr();
  return run;
}

}  // namespace regatta
