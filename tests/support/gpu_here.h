// Whether tests that need a GPU can run; they skip where they cannot.
#pragma once

#if REGATTA_HAVE_CUDA
#include "backends/cuda/cuda_backend.h"
#endif

namespace regatta {

inline bool gpu_here() {
#if REGATTA_HAVE_CUDA
  return cuda::available();
#else
  return false;
#endif
}

}  // namespace regatta
