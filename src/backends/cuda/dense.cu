// The dense layer: three matrix products on plain row-major matrices.
#include <optional>

#include "backends/cuda/channels.cuh"
#include "backends/cuda/fused.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/pack.h"

namespace regatta::cuda {
namespace {

class Dense : public Kernel {
 public:
  explicit Dense(const Site& site)
      : tools_(site.tools),
        precision_(site.settings.precision),
        form_(weight_form(site.graph, site.node, site.layout(), precision_)),
        view_(site.node.shape, site.layout(), site.n),
        input_(site.input_dtype(0)),
        output_(site.dtype()),
        bias_(site.node.parameters.size() > 1),
        relu_(site.node.attributes.flag("relu")),
        forward_(tools_, {.rows = site.n,
                          .columns = form_.outputs,
                          .inner = form_.inputs,
                          .transpose_b = true,
                          .factors = form_.dtype,
                          .result = output_,
                          .precision = precision_}) {
    if (input_ != form_.dtype)
      throw InputError("dense '" + site.node.name +
                       "': in bf16 nothing may follow the logits: use --precision fp32");
  }

  void prepare(Pass pass) override {
    if (pass == Pass::evaluate || weight_gradient_) return;
    weight_gradient_.emplace(tools_, MatmulProblem{.rows = form_.outputs,
                                                   .columns = form_.inputs,
                                                   .inner = view_.n,
                                                   .transpose_a = true,
                                                   .factors = form_.dtype,
                                                   .result = Dtype::f32,
                                                   .precision = precision_});
    input_gradient_.emplace(tools_, MatmulProblem{.rows = view_.n,
                                                  .columns = form_.inputs,
                                                  .inner = form_.outputs,
                                                  .factors = form_.dtype,
                                                  .result = input_,
                                                  .precision = precision_});
  }

  // Side by side: the gradient behind the relu in the factors' type, a bias's sums, the library's.
  std::size_t workspace_bytes() const override {
    return gradient_bytes() + sums_bytes() + Matmul::workspace_bytes;
  }

  void run(Work work, const Operands& o) override {
    if (work == Work::forward)
      forward(o);
    else
      backward(o);
  }

 private:
  void forward(const Operands& o) const {
    forward_.run(o.inputs[0], weights(o), o.output, false, library());
    if (!bias_ && !relu_) return;
    finish_forward(tools_, {.values = o.output,
                            .dtype = output_,
                            .count = values(),
                            .channels = view_.channels,
                            .bias = bias_ ? o.parameters[1] : nullptr,
                            .relu = relu_});
  }

  void backward(const Operands& o) const {
    const void* gradient = o.output_gradient;
    if (own_gradient()) {
      begin_backward(tools_, {.output = relu_ ? o.output : nullptr,
                              .gradient = gradient,
                              .dtype = output_,
                              .target = tools_.workspace,
                              .target_dtype = form_.dtype,
                              .count = values()});
      gradient = tools_.workspace;
    }
    if (o.gradient_modes[0] != GradientMode::none)
      input_gradient_->run(gradient, weights(o), o.input_gradients[0],
                           o.gradient_modes[0] == GradientMode::add, library());
    weight_gradient_->run(gradient, o.inputs[0], o.parameter_gradients[0],
                          o.add_parameter_gradients, library());
    if (!bias_) return;
    with_type(own_gradient() ? form_.dtype : output_, [&]<class T>() {
      sum_channels<T, PlainSum>(tools_, view_, sums(),
                                BiasGradient{o.parameter_gradients[1], o.add_parameter_gradients},
                                static_cast<const T*>(gradient));
    });
  }

  const void* weights(const Operands& o) const {
    return form_.plain() ? static_cast<const void*>(o.parameters[0]) : o.packed;
  }

  std::int64_t values() const { return view_.n * view_.channels; }
  bool own_gradient() const { return relu_ || output_ != form_.dtype; }
  std::size_t gradient_bytes() const {
    const auto bytes = static_cast<std::size_t>(values()) * dtype_bytes(form_.dtype);
    return own_gradient() ? aligned(bytes) : 0;
  }
  std::size_t sums_bytes() const {
    return bias_ ? aligned(partial_sums(view_, tools_.processors) * sizeof(double)) : 0;
  }
  double* sums() const { return reinterpret_cast<double*>(tools_.workspace + gradient_bytes()); }
  std::byte* library() const { return tools_.workspace + gradient_bytes() + sums_bytes(); }

  const Tools& tools_;
  Precision precision_;
  WeightForm form_;
  ChannelView view_;  // of the output
  Dtype input_, output_;
  bool bias_, relu_;
  Matmul forward_;
  std::optional<Matmul> weight_gradient_, input_gradient_;
};

}  // namespace

std::unique_ptr<Kernel> make_dense(const Site& site) { return std::make_unique<Dense>(site); }

}  // namespace regatta::cuda
