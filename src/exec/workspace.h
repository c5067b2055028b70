// The CPU backend of a plan, and the scratch memory that its kernels will make.
#pragma once

#include <memory>

#include "backends/cpu/cpu_backend.h"
#include "tasks/blueprint.h"

namespace regatta {

std::unique_ptr<cpu::Backend> make_cpu_backend(const Blueprint& blueprint,
                                               const Normalisation& normalisation);

// Bytes that the kernels of all CPU workers need for steps of full batches, if each worker runs
// every kind of task on the largest chunk. The kernels themselves say how much, with the scratch
// memory of the library among it, as they would be made for the worker's team. They are described,
// not compiled.
std::size_t workspace_bytes(const Blueprint& blueprint, const Normalisation& normalisation,
                            Pass pass = Pass::train);

}  // namespace regatta
