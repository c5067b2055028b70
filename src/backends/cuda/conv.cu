// Convolution through cuDNN, which takes any count of channels: where its fast kernels want whole
// vectors it pads in its own workspace. Images come padded already, as that would be slow for them.
// Depthwise convolutions, and what cuDNN does not take, go to kernels of our own.
#include "backends/cuda/channels.cuh"
#include "backends/cuda/conv_direct.h"
#include "backends/cuda/conv_plan.h"
#include "backends/cuda/fused.h"
#include "backends/cuda/pack.h"
#include "ops/window.h"

namespace regatta::cuda {
namespace {

class Conv : public Kernel {
 public:
  explicit Conv(const Site& site)
      : tools_(site.tools),
        form_(weight_form(site.graph, site.node, site.layout(), site.settings.precision)),
        view_(site.node.shape, site.layout(), site.n),
        input_gradient_mode_(site.flow.mode(site.node.id, 0)),
        bias_(site.node.parameters.size() > 1),
        relu_(site.node.attributes.flag("relu")) {
    const Shape& in = site.input(0).shape;
    const Shape& out = site.node.shape;
    const Window window = window_of(site.node, 1);
    const std::int64_t groups = site.node.attributes.integer("groups", 1);
    problem_ = {.layout = site.layout(),
                .precision = site.settings.precision,
                .values = site.dtype(),
                .weights = form_.dtype,
                .n = site.n,
                .inputs = groups == 1 ? form_.packed_inputs : in.channels(),
                .height = in.height(),
                .width = in.width(),
                .outputs = out.channels(),
                .out_height = out.height(),
                .out_width = out.width(),
                .kernel_h = window.kernel.height,
                .kernel_w = window.kernel.width,
                .stride_h = window.stride.height,
                .stride_w = window.stride.width,
                .pad_h = window.padding.height,
                .pad_w = window.padding.width,
                .pad_after_h = window.padding_after.height,
                .pad_after_w = window.padding_after.width,
                .dilation_h = window.dilation.height,
                .dilation_w = window.dilation.width,
                .groups = groups};
    direct_ = direct(in.channels());
    forward_ = plan(ConvDirection::forward);
  }

  void prepare(Pass pass) override {
    if (pass == Pass::evaluate || backward_) return;
    backward_ = true;
    weight_gradient_ = plan(ConvDirection::weight_gradient);
    if (!weight_gradient_)
      library_bytes_ = std::max(library_bytes_, direct_workspace_bytes(direct_, tools_.processors));
    if (input_gradient_mode_ != GradientMode::none)
      input_gradient_ = plan(ConvDirection::input_gradient);
  }

  // Side by side: the gradient behind the relu, the weights' gradient as cuDNN leaves it, the sums
  // of a bias, the library's own.
  std::size_t workspace_bytes() const override {
    return gradient_bytes() + weights_bytes() + sums_bytes() + aligned(library_bytes_);
  }

  void run(Work work, const Operands& o) override {
    if (work == Work::forward)
      forward(o);
    else
      backward(o);
  }

 private:
  DirectConv direct(std::int64_t inputs) const {
    const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
    const ConvProblem& p = problem_;
    return {.dtype = p.values,
            .channels_last = p.layout == Layout::nhwc,
            .n = narrow(p.n),
            .inputs = narrow(inputs),
            .height = narrow(p.height),
            .width = narrow(p.width),
            .stored_inputs = narrow(p.inputs),
            .outputs = narrow(p.outputs),
            .out_height = narrow(p.out_height),
            .out_width = narrow(p.out_width),
            .kernel_h = narrow(p.kernel_h),
            .kernel_w = narrow(p.kernel_w),
            .stride_h = narrow(p.stride_h),
            .stride_w = narrow(p.stride_w),
            .pad_h = narrow(p.pad_h),
            .pad_w = narrow(p.pad_w),
            .dilation_h = narrow(p.dilation_h),
            .dilation_w = narrow(p.dilation_w),
            .groups = narrow(p.groups)};
  }

  // Null where our own kernels are to run.
  const ConvPlan* plan(ConvDirection direction) {
    if (direct_.depthwise()) return nullptr;
    ConvProblem problem = problem_;
    problem.direction = direction;
    problem.accumulate =
        direction == ConvDirection::input_gradient && input_gradient_mode_ == GradientMode::add;
    const ConvPlan* found = tools_.plans->find(problem);
    if (found) library_bytes_ = std::max(library_bytes_, found->workspace_bytes());
    return found;
  }

  void forward(const Operands& o) const {
    if (forward_)
      forward_->run(tools_.cudnn, o.inputs[0], weights(o), o.output, library());
    else
      direct_forward(tools_, direct_, o.inputs[0], weights(o), o.output);
    if (!bias_ && !relu_) return;
    finish_forward(tools_, {.values = o.output,
                            .dtype = problem_.values,
                            .count = values(),
                            .pixels = view_.innermost ? 1 : view_.pixels,
                            .channels = view_.channels,
                            .bias = bias_ ? o.parameters[1] : nullptr,
                            .relu = relu_});
  }

  void backward(const Operands& o) const {
    const void* gradient = o.output_gradient;
    if (relu_) {
      begin_backward(tools_, {.output = o.output,
                              .gradient = gradient,
                              .dtype = problem_.values,
                              .target = own_gradient(),
                              .target_dtype = problem_.values,
                              .count = values()});
      gradient = own_gradient();
    }
    if (o.gradient_modes[0] != GradientMode::none) {
      if (input_gradient_)
        input_gradient_->run(tools_.cudnn, o.input_gradients[0], weights(o), gradient, library());
      else
        direct_input_gradient(tools_, direct_, weights(o), gradient, o.input_gradients[0],
                              o.gradient_modes[0] == GradientMode::add);
    }
    weight_gradient(o, gradient);
    if (bias_) bias_gradient(o, gradient);
  }

  // cuDNN writes the gradient as the weights lie, and in bf16 only in bf16; chunks are summed in
  // fp32.
  void weight_gradient(const Operands& o, const void* gradient) const {
    if (!weight_gradient_) {
      direct_weight_gradient(tools_, direct_, o.inputs[0], gradient, o.parameter_gradients[0],
                             o.add_parameter_gradients, library());
      return;
    }
    const bool in_place = form_.plain() && !o.add_parameter_gradients;
    void* target = in_place ? static_cast<void*>(o.parameter_gradients[0]) : own_weights();
    weight_gradient_->run(tools_.cudnn, o.inputs[0], target, gradient, library());
    if (!in_place)
      unpack_gradient(tools_, form_, own_weights(), o.parameter_gradients[0],
                      o.add_parameter_gradients);
  }

  void bias_gradient(const Operands& o, const void* gradient) const {
    with_type(problem_.values, [&]<class T>() {
      sum_channels<T, PlainSum>(tools_, view_, sums(),
                                BiasGradient{o.parameter_gradients[1], o.add_parameter_gradients},
                                static_cast<const T*>(gradient));
    });
  }

  const void* weights(const Operands& o) const {
    return form_.plain() ? static_cast<const void*>(o.parameters[0]) : o.packed;
  }

  std::int64_t values() const { return view_.rows() * view_.channels; }
  std::size_t gradient_bytes() const {
    const auto bytes = static_cast<std::size_t>(values()) * dtype_bytes(problem_.values);
    return relu_ ? aligned(bytes) : 0;
  }
  std::size_t weights_bytes() const {
    return aligned(static_cast<std::size_t>(form_.packed_elements()) * dtype_bytes(form_.dtype));
  }
  std::size_t sums_bytes() const {
    return bias_ ? aligned(partial_sums(view_, tools_.processors) * sizeof(double)) : 0;
  }

  std::byte* own_gradient() const { return tools_.workspace; }
  std::byte* own_weights() const { return own_gradient() + gradient_bytes(); }
  double* sums() const { return reinterpret_cast<double*>(own_weights() + weights_bytes()); }
  std::byte* library() const { return own_weights() + weights_bytes() + sums_bytes(); }

  const Tools& tools_;
  WeightForm form_;
  ChannelView view_;  // of the output
  GradientMode input_gradient_mode_;
  bool bias_, relu_;
  ConvProblem problem_;
  DirectConv direct_;
  const ConvPlan *forward_ = nullptr, *input_gradient_ = nullptr, *weight_gradient_ = nullptr;
  std::size_t library_bytes_ = 0;
  bool backward_ = false;  // is prepared
};

}  // namespace

std::unique_ptr<Kernel> make_conv(const Site& site) { return std::make_unique<Conv>(site); }

}  // namespace regatta::cuda
