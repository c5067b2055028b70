// A network on the CUDA backend, instruction by instruction, on given numbers: what is compared
// with the oracle, value by value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/precision.h"
#include "support/reference_run.h"

namespace regatta {

struct CudaRunOptions {
  Layout layout = Layout::nhwc;
  Precision precision = Precision::fp32;
  std::vector<std::int64_t> chunks;  // samples of each; all add into one gradient slot, in order
  bool captured = false;             // the step is captured, and its graph run after a first step
};

// Everything plain NCHW in float, samples in their order.
struct CudaRun {
  std::vector<float> logits;       // evaluation before the step
  Tensors<float> values;           // by NodeId
  Tensors<float> value_gradients;  // by NodeId; empty where none is wanted
  Tensors<float> parameter_gradients;
  Tensors<float> states;
};

CudaRun run_on_gpu(const Graph& graph, const ReferenceInput<float>& input,
                   const CudaRunOptions& options);

}  // namespace regatta
