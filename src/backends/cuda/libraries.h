// CUDA's libraries are opened when their first function is called: a run without a GPU loads none
// of them, and the program starts on machines that have none. The CUDA runtime is linked statically
// and opens the driver in the same way.
#pragma once

#include <string>

namespace regatta::cuda {

// Null if `name`, such as "libcupti.so.13", is neither known to the loader nor where toolkits keep
// it (CUDA_HOME, CUDA_PATH, /usr/local/cuda). The library stays open to the end of the program.
void* open_library(const std::string& name);

}  // namespace regatta::cuda
