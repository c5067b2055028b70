# Decides whether the CUDA backend is built: REGATTA_HAVE_CUDA becomes 0 or 1.
# With REGATTA_CUDA=AUTO anything that is missing switches it off, with ON it is an error.

set(REGATTA_HAVE_CUDA 0)
set(no_cuda "")
if(REGATTA_CUDA STREQUAL "OFF")
  set(no_cuda "REGATTA_CUDA=OFF")
elseif(NOT cuda_sources)
  set(no_cuda "src/backends/cuda has no sources")
else()
  find_program(REGATTA_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  mark_as_advanced(REGATTA_NVCC)
  regatta_find_cuda()
  # StarPU's own configuration says whether it can drive a GPU.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES regatta::starpu)
  unset(REGATTA_STARPU_HAS_CUDA CACHE)
  check_cxx_source_compiles("#include <starpu_config.h>
    #ifndef STARPU_USE_CUDA
    #error no
    #endif
    int main() {}" REGATTA_STARPU_HAS_CUDA)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(NOT REGATTA_NVCC)
    set(no_cuda "there is no nvcc (CUDA_HOME names a toolkit)")
  elseif(NOT TARGET regatta::cuda)
    set(no_cuda "the static CUDA runtime, cuBLAS's or cuDNN's headers are missing (CMAKE_PREFIX_PATH names their folders)")
  elseif(NOT REGATTA_STARPU_HAS_CUDA)
    set(no_cuda "this StarPU was built without CUDA")
  endif()
endif()

if(NOT no_cuda)
  set(CMAKE_CUDA_COMPILER ${REGATTA_NVCC})
  # Machine code for Hopper; other GPUs since Ampere compile the portable code when first used.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90-real)
  endif()
  # Linked into the program and into StarPU, so that neither loads a CUDA library in a run without a
  # GPU; streams, events and memory belong to the driver, which both share.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  # CMake 3.25 does not know yet that nvcc speaks C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(REGATTA_HAVE_CUDA 1)
  message(STATUS "CUDA backend: ${CMAKE_CUDA_COMPILER_VERSION}")
elseif(REGATTA_CUDA STREQUAL "ON")
  message(FATAL_ERROR "REGATTA_CUDA=ON, but ${no_cuda}")
else()
  message(STATUS "CUDA backend: no (${no_cuda})")
endif()
