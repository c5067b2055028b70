// Three matrix products of bf16 numbers with fp32 sums. The products of both passes read the same
// rounded weights.
#include <algorithm>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/dense.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

using dnnl::memory;
using Descriptor = memory::desc;

// Rows times columns numbers, row by row, or column by column where transposed.
Descriptor matrix(std::int64_t rows, std::int64_t columns, Dtype dtype, bool transposed = false) {
  return {{rows, columns},
          data_type(dtype),
          transposed ? memory::format_tag::ba : memory::format_tag::ab};
}

REGATTA_CLONES void add_rows(const Bfloat16* gradient, float* bias_gradient, std::int64_t rows,
                             std::int64_t features, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < features; ++i)
      bias_gradient[i] += to_float(gradient[row * stride + i]);
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class DenseBf16 : public Kernel {
 public:
  explicit DenseBf16(const Site& site)
      : n_(site.n),
        inputs_(site.input(0).shape.elements()),
        features_(site.node.shape.elements()),
        bias_(site.node.parameters.size() > 1),
        relu_(site.node.attributes.flag("relu")) {
    dnnl::post_ops after;
    if (relu_) append_relu(after);
    forward_ =
        product(matrix(n_, inputs_, Dtype::bf16), matrix(inputs_, features_, Dtype::bf16, true),
                matrix(n_, features_, Dtype::bf16), after, bias_);
  }

  // Backward products are described when a first backward asks, so that evaluation never pays for
  // them.
  void prepare(Work work) override {
    if (work == Work::forward || input_gradient_.write) return;
    const Descriptor gradient = matrix(n_, features_, Dtype::bf16);
    input_gradient_ = gradient_products(gradient, matrix(features_, inputs_, Dtype::bf16),
                                        matrix(n_, inputs_, Dtype::bf16));
    weight_gradient_ =
        gradient_products(matrix(features_, n_, Dtype::bf16, true),
                          matrix(n_, inputs_, Dtype::bf16), matrix(features_, inputs_, Dtype::f32));
  }

  // Side by side: the gradient behind the relu, the library's own.
  std::size_t scratch_bytes() const override { return masked_bytes() + library_scratch_; }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    std::byte* library = scratch + masked_bytes();
    if (work == Work::forward) {
      if (bias_)
        forward_({o.inputs[0], o.packed, o.output, library, o.parameters[1]});
      else
        forward_({o.inputs[0], o.packed, o.output, library});
      return;
    }
    const auto* gradient = values_of<Bfloat16>(o.output_gradient);
    if (relu_) {
      auto* masked = reinterpret_cast<Bfloat16*>(scratch);
      mask_by_sign(values_of<Bfloat16>(o.output), gradient, masked,
                   static_cast<std::size_t>(n_ * features_));
      gradient = masked;
    }
    if (gives_input_gradients(work) && o.gradient_modes[0] != GradientMode::none)
      input_gradient_.launch(o.gradient_modes[0] == GradientMode::add)(
          {gradient, o.packed, o.input_gradients[0], library});
    if (!gives_parameter_gradients(work)) return;
    weight_gradient_.launch(o.add_parameter_gradients)(
        {gradient, o.inputs[0], o.parameter_gradients[0], library});
    if (!bias_) return;
    if (!o.add_parameter_gradients) std::fill_n(o.parameter_gradients[1], features_, 0.0f);
    // By features, so that every sum keeps the order of samples.
    parallel_for(features_, n_, [&](std::int64_t begin, std::int64_t end) {
      add_rows(gradient + begin, o.parameter_gradients[1] + begin, n_, end - begin, features_);
    });
  }

 private:
  // One product that overwrites its result, and one that adds to it.
  struct GradientProducts {
    Launch write, add;
    Launch& launch(bool adds) { return adds ? add : write; }
  };

  Launch product(const Descriptor& a, const Descriptor& b, const Descriptor& c,
                 const dnnl::post_ops& after, bool bias) {
    dnnl::primitive_attr attr = user_scratchpad();
    attr.set_post_ops(after);
    const Descriptor row = matrix(1, features_, Dtype::f32);
    const auto described =
        bias ? describe<dnnl::matmul>(attr, a, b, row, c) : describe<dnnl::matmul>(attr, a, b, c);
    Launch launch(described);
    launch.argument(DNNL_ARG_SRC, a);
    launch.argument(DNNL_ARG_WEIGHTS, b);
    launch.argument(DNNL_ARG_DST, c);
    launch.argument(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
    if (bias) launch.argument(DNNL_ARG_BIAS, row);
    library_scratch_ = std::max(library_scratch_, described.scratchpad_desc().get_size());
    return launch;
  }

  GradientProducts gradient_products(const Descriptor& a, const Descriptor& b,
                                     const Descriptor& c) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    return {product(a, b, c, {}, false), product(a, b, c, sum, false)};
  }

  std::size_t masked_bytes() const {
    return relu_ ? aligned(static_cast<std::size_t>(n_ * features_) * sizeof(Bfloat16)) : 0;
  }

  std::int64_t n_, inputs_, features_;
  bool bias_, relu_;
  std::size_t library_scratch_ = 0;
  Launch forward_;
  GradientProducts input_gradient_, weight_gradient_;
};

}  // namespace

std::unique_ptr<Kernel> make_dense_bf16(const Site& site) {
  return std::make_unique<DenseBf16>(site);
}

std::size_t rounded_bytes(const Shape& weights) {
  return static_cast<std::size_t>(weights.elements()) * sizeof(Bfloat16);
}

void round_dense_weights(const Shape& weights, const float* parameters, std::byte* packed) {
  narrow(parameters, reinterpret_cast<Bfloat16*>(packed),
         static_cast<std::size_t>(weights.elements()));
}

}  // namespace regatta::cpu
