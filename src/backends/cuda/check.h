// What CUDA's libraries answer, turned into our errors.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <string>

#include "base/error.h"

namespace regatta::cuda {

// A library's own words; the worker adds which operator it was.
class LibraryError : public Error {
 public:
  using Error::Error;
};

void check(cudaError_t status);
void check(cublasStatus_t status);
void check(cudnnStatus_t status);

// The device has no room: `what` needed it.
[[noreturn]] void throw_out_of_memory(const std::string& what, std::size_t bytes);

}  // namespace regatta::cuda
