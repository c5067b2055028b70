// The dense layer in fp32: three matrix products on plain row-major matrices.
#include "backends/cpu/dense.h"

#include <algorithm>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

struct Matrix {
  const float* data;
  bool transposed;
  std::int64_t row_stride;
};

// c (rows x columns, row-major) = a * b + keep * c
void multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, const Matrix& a,
              const Matrix& b, float keep, float* c, std::int64_t c_stride) {
  dnnl::error::wrap_c_api(
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', rows, columns, inner, 1.0f,
                 a.data, a.row_stride, b.data, b.row_stride, keep, c, c_stride),
      "oneDNN could not multiply matrices");
}

REGATTA_CLONES void add_bias(float* output, const float* bias, std::int64_t rows,
                             std::int64_t features, bool relu) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* values = output + row * features;
    for (std::int64_t i = 0; i < features; ++i) {
      const float sum = values[i] + (bias ? bias[i] : 0);
      values[i] = relu && sum < 0 ? 0 : sum;
    }
  }
}

REGATTA_CLONES void add_rows(const float* gradient, float* bias_gradient, std::int64_t rows,
                             std::int64_t features, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < features; ++i) bias_gradient[i] += gradient[row * stride + i];
}

class Dense : public Kernel {
 public:
  explicit Dense(const Site& site)
      : n_(site.n),
        inputs_(site.input(0).shape.elements()),
        features_(site.node.shape.elements()),
        bias_(site.node.parameters.size() > 1),
        relu_(site.node.attributes.flag("relu")) {}

  std::size_t scratch_bytes() const override {
    return relu_ ? static_cast<std::size_t>(n_ * features_) * sizeof(float) : 0;
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    if (work == Work::forward) {
      multiply(n_, features_, inputs_, {o.inputs[0], false, inputs_},
               {o.parameters[0], true, inputs_}, 0.0f, o.output, features_);
      if (bias_ || relu_)
        parallel_for(n_, features_, [&](std::int64_t begin, std::int64_t end) {
          add_bias(o.output + begin * features_, bias_ ? o.parameters[1] : nullptr, end - begin,
                   features_, relu_);
        });
      return;
    }
    const float* gradient = o.output_gradient;
    if (relu_) {
      auto* masked = reinterpret_cast<float*>(scratch);
      mask_by_sign(o.output, gradient, masked, static_cast<std::size_t>(n_ * features_));
      gradient = masked;
    }
    if (gives_input_gradients(work) && o.gradient_modes[0] != GradientMode::none)
      multiply(
          n_, inputs_, features_, {gradient, false, features_}, {o.parameters[0], false, inputs_},
          o.gradient_modes[0] == GradientMode::add ? 1.0f : 0.0f, o.input_gradients[0], inputs_);
    if (!gives_parameter_gradients(work)) return;
    multiply(features_, inputs_, n_, {gradient, true, features_}, {o.inputs[0], false, inputs_},
             o.add_parameter_gradients ? 1.0f : 0.0f, o.parameter_gradients[0], inputs_);
    if (!bias_) return;
    if (!o.add_parameter_gradients) std::fill_n(o.parameter_gradients[1], features_, 0.0f);
    // By features, so that every sum keeps the order of samples.
    parallel_for(features_, n_, [&](std::int64_t begin, std::int64_t end) {
      add_rows(gradient + begin, o.parameter_gradients[1] + begin, n_, end - begin, features_);
    });
  }

 private:
  std::int64_t n_, inputs_, features_;
  bool bias_, relu_;
};

}  // namespace

std::unique_ptr<Kernel> make_dense(const Site& site) {
  if (site.dtype() == Dtype::bf16) return make_dense_bf16(site);
  return std::make_unique<Dense>(site);
}

}  // namespace regatta::cpu
