// Skips tests of bf16 where the processor has no instructions for it.
#pragma once

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"

#define SKIP_WITHOUT_BF16()                                                                    \
  if (const std::string why = regatta::cpu::hindrance(regatta::Precision::bf16); !why.empty()) \
  GTEST_SKIP() << why
