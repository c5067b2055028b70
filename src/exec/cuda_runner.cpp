#include "exec/cuda_runner.h"

#include "base/error.h"

namespace regatta {
void require_cuda() {
  throw InputError("this build of regatta has no CUDA: use --devices cpu, or build where nvcc is");
}
std::unique_ptr<CudaRunner> make_cuda_runner(const Blueprint&, GroupId, const ExecOptions&) {
  require_cuda();
  return nullptr;
}
}  // namespace regatta
