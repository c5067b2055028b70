// Kernels that compute in fp32 alone, on values that lie in bf16.
#pragma once

#include "backends/cpu/kernel.h"

namespace regatta::cpu {

// Runs the operator's fp32 kernel on fp32 copies of its bf16 values and rounds what it wrote.
std::unique_ptr<Kernel> make_on_fp32_copies(const Site& site, MakeKernel make);

}  // namespace regatta::cpu
