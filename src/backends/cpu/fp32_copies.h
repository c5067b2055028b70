// Lets operators whose kernels know only fp32 work on values that are bf16 in memory.
#pragma once

#include "backends/cpu/kernel.h"

namespace regatta::cpu {

// A kernel that copies the operator's bf16 values to fp32, runs the operator's fp32 kernel (made by
// `make`) on the copies, and rounds its results back to bf16.
std::unique_ptr<Kernel> make_on_fp32_copies(const Site& site, MakeKernel make);

}  // namespace regatta::cpu
