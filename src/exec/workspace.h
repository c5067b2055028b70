// The CPU backend of a plan, and the scratch memory that its kernels will make.
#pragma once

#include <memory>

#include "backends/cpu/cpu_backend.h"
#include "exec/executor.h"

namespace regatta {

std::unique_ptr<cpu::Backend> make_cpu_backend(const Blueprint& blueprint,
                                               const ExecOptions& options);

// Bytes that the kernels of all CPU workers need for training steps of full batches, if each worker
// runs every kind of task. Makes the kernels to ask them, which may take a second.
std::size_t workspace_bytes(const Graph& graph, const Plan& plan, const ExecOptions& options);

}  // namespace regatta
