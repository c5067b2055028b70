// An operator made ready for one chunk size, and how the CUDA backend finds it.
#pragma once

#include <memory>
#include <string_view>

#include "backends/cuda/check.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"
#include "graph/op.h"

namespace regatta::cuda {

class ConvPlans;

// What one worker's kernels run with.
struct Tools {
  cudaStream_t stream = nullptr;
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  int processors = 1;                   // multiprocessors of the device
  ConvPlans* plans = nullptr;           // shared by convolutions of one shape
  std::byte* workspace = nullptr;       // at least what the kernel that runs has asked for
  const std::uint64_t* step = nullptr;  // on the device: micro-batches done before this one
  int* mark = nullptr;                  // on the device: set when a loss in training is not finite
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Called before workspace_bytes() and run(); `pass` says whether backward will come.
  virtual void prepare(Pass) {}
  virtual std::size_t workspace_bytes() const { return 0; }
  virtual void run(Work work, const Operands& operands) = 0;
};

// Where a kernel will run: its node, how values lie around it, and how many samples come at once.
struct Site {
  const Graph& graph;
  const Node& node;
  const Settings& settings;
  const std::vector<Layout>& layouts;  // by node
  const std::vector<Dtype>& dtypes;    // by node
  const GradientFlow& flow;
  const Tools& tools;
  std::int64_t n = 0;

  const Node& input(std::size_t i) const { return graph.node(node.inputs[i]); }
  Dtype dtype() const { return dtypes[node.id.value]; }
  Dtype input_dtype(std::size_t i) const { return dtypes[node.inputs[i].value]; }
  Layout layout() const { return layouts[node.id.value]; }
  Layout input_layout(std::size_t i) const { return layouts[node.inputs[i].value]; }
  std::int64_t values() const { return n * node.shape.elements(); }  // only the input is padded
};

using MakeKernel = std::unique_ptr<Kernel> (*)(const Site&);

// One row per operator this backend runs; each is defined in the operator's own file.
MakeKernel kernel_for(std::string_view op);

std::unique_ptr<Kernel> make_activation(const Site&);
std::unique_ptr<Kernel> make_adaptive_average_pool(const Site&);
std::unique_ptr<Kernel> make_add(const Site&);
std::unique_ptr<Kernel> make_average_pool(const Site&);
std::unique_ptr<Kernel> make_batch_norm(const Site&);
std::unique_ptr<Kernel> make_whole_batch_norm(const Site&);  // whatever its groups
std::unique_ptr<Kernel> make_concat(const Site&);
std::unique_ptr<Kernel> make_conv(const Site&);
std::unique_ptr<Kernel> make_cross_entropy(const Site&);
std::unique_ptr<Kernel> make_dense(const Site&);
std::unique_ptr<Kernel> make_dropout(const Site&);
std::unique_ptr<Kernel> make_flatten(const Site&);
std::unique_ptr<Kernel> make_global_average_pool(const Site&);
std::unique_ptr<Kernel> make_input(const Site&);
std::unique_ptr<Kernel> make_layer_norm(const Site&);
std::unique_ptr<Kernel> make_local_response_norm(const Site&);
std::unique_ptr<Kernel> make_max_pool(const Site&);

}  // namespace regatta::cuda
