#include "backends/cuda/check.h"

#include <array>

#include "backends/cuda/cuda_backend.h"

namespace regatta::cuda {

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  throw LibraryError(std::string("CUDA: ") + cudaGetErrorString(status) + " (" +
                     cudaGetErrorName(status) + ")");
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LibraryError(std::string("cuBLAS: ") + cublasLtGetStatusString(status));
}

void check(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 256> reason{};
  cudnnGetLastErrorString(reason.data(), reason.size());
  std::string text = std::string("cuDNN: ") + cudnnGetErrorString(status);
  if (reason[0] != '\0') text += std::string(": ") + reason.data();
  for (char& letter : text)
    if (letter == '\n') letter = ' ';
  throw LibraryError(text);
}

void throw_out_of_memory(const std::string& what, std::size_t bytes) {
  const auto mib = [](std::size_t count) { return std::to_string(count >> 20) + " MiB"; };
  const MemoryInfo memory = memory_info();
  throw InputError(what + " needs " + mib(bytes) + " on the GPU, but " + mib(memory.free) + " of " +
                   mib(memory.total) + " are free: a smaller --batch or more --chunks fits");
}

}  // namespace regatta::cuda
