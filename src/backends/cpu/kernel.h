// An operator made ready for one chunk size, and how the CPU backend finds it.
#pragma once

#include <memory>

#include "backends/operands.h"
#include "base/dtype.h"
#include "graph/op.h"

namespace regatta::cpu {

// Used by one worker at a time.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void prepare(Work) {}  // called before scratch_bytes() and run()
  virtual void run(Work work, const Operands& operands, std::byte* scratch) = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
};

class ConvFormats;

// Where a kernel will run: its node, how values lie around it, and how many samples come at once.
struct Site {
  const Graph& graph;
  const Node& node;
  const std::vector<Layout>& layouts;  // by node
  std::int64_t n = 0;
  const Normalisation& normalisation;
  Dtype sample_dtype = Dtype::u8;
  const ConvFormats* conv_formats = nullptr;   // of this node, if it is a convolution
  const std::vector<Dtype>* dtypes = nullptr;  // of values, by node; null where all are f32

  Layout layout() const { return layouts[node.id.value]; }
  const Node& input(std::size_t i) const { return graph.node(node.inputs[i]); }
  Layout input_layout(std::size_t i) const { return layouts[node.inputs[i].value]; }
  Dtype dtype() const { return dtype_of(node.id); }
  Dtype input_dtype(std::size_t i) const { return dtype_of(node.inputs[i]); }
  Dtype dtype_of(NodeId id) const { return dtypes ? (*dtypes)[id.value] : Dtype::f32; }
  bool planar() const { return node.shape.rank() == 3 && channel_block(layout()) == 1; }
  std::int64_t elements() const { return padded_elements(node.shape, layout()); }  // one sample's
};

using MakeKernel = std::unique_ptr<Kernel> (*)(const Site&);

// How a kernel reads and writes bf16 values.
enum class Bf16Values {
  copied,          // not at all: it is given fp32 copies
  kept,            // as they are
  kept_in_blocks,  // as they are in blocks of channels; of planes it is given fp32 copies
};

struct KernelRow {
  std::string_view op;
  MakeKernel make;
  Bf16Values bf16 = Bf16Values::copied;
};

// One row per operator this backend runs; each is defined in the operator's own file. Convolution
// and max pooling have kernels of their own for images that stay planar.
const KernelRow& kernel_for(std::string_view op);

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
std::unique_ptr<Kernel> make_gelu(const Site&);
std::unique_ptr<Kernel> make_global_average_pool(const Site&);
std::unique_ptr<Kernel> make_halving_pool(const Site&);
std::unique_ptr<Kernel> make_input(const Site&);
std::unique_ptr<Kernel> make_layer_norm(const Site&);
std::unique_ptr<Kernel> make_leaky_relu(const Site&);
std::unique_ptr<Kernel> make_local_response_norm(const Site&);
std::unique_ptr<Kernel> make_max_pool(const Site&);
std::unique_ptr<Kernel> make_relu(const Site&);
std::unique_ptr<Kernel> make_relu6(const Site&);
std::unique_ptr<Kernel> make_sigmoid(const Site&);
std::unique_ptr<Kernel> make_tanh(const Site&);
std::unique_ptr<Kernel> make_thin_conv(const Site&);

}  // namespace regatta::cpu
