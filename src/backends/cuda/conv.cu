// Convolution through cuDNN. Channels last, the library sees counts rounded up to what its fast
// kernels want (a network's images to 4, all else to whole vectors of 8): narrower values pass
// through the workspace, and bias, relu and the relu's gradient ride along on that way.
#include "backends/cuda/channel_copy.h"
#include "backends/cuda/channels.cuh"
#include "backends/cuda/conv_plan.h"
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
        bias_(site.node.parameters.size() > 1),
        relu_(site.node.attributes.flag("relu")),
        wants_input_gradient_(site.flow.mode(site.node.id, 0) != GradientMode::none),
        adds_input_gradient_(site.flow.mode(site.node.id, 0) == GradientMode::add) {
    const Shape& in = site.input(0).shape;
    const Shape& out = site.node.shape;
    const Window window = window_of(site.node, 1);
    input_rows_ = site.n * in.height() * in.width();
    problem_ = {.layout = site.layout(),
                .precision = site.settings.precision,
                .values = site.dtype(),
                .weights = form_.dtype,
                .n = site.n,
                .inputs = form_.padded_inputs,
                .height = in.height(),
                .width = in.width(),
                .outputs = form_.padded_outputs,
                .out_height = out.height(),
                .out_width = out.width(),
                .kernel_h = window.kernel.height,
                .kernel_w = window.kernel.width,
                .stride_h = window.stride.height,
                .stride_w = window.stride.width,
                .pad_h = window.padding.height,
                .pad_w = window.padding.width};
    forward_ = plan(ConvDirection::forward);
    library_bytes_ = forward_->workspace_bytes();
  }

  void prepare(Pass pass) override {
    if (pass == Pass::evaluate || weight_gradient_) return;
    weight_gradient_ = plan(ConvDirection::weight_gradient);
    library_bytes_ = std::max(library_bytes_, weight_gradient_->workspace_bytes());
    if (!wants_input_gradient_) return;
    // Where cuDNN has no engine that adds, it writes to the workspace and we add.
    if (adds_input_gradient_ && !narrow_input()) {
      ConvProblem adding = problem_;
      adding.direction = ConvDirection::input_gradient;
      adding.accumulate = true;
      input_gradient_ = tools_.plans->find(adding);
    }
    library_adds_ = input_gradient_ != nullptr;
    if (!library_adds_) input_gradient_ = plan(ConvDirection::input_gradient);
    library_bytes_ = std::max(library_bytes_, input_gradient_->workspace_bytes());
  }

  // Side by side: values in the library's counts, the sums of a bias, the library's own.
  std::size_t workspace_bytes() const override {
    return input_bytes() + output_bytes() + weights_bytes() + sums_bytes() +
           aligned(library_bytes_);
  }

  void run(Work work, const Operands& o) override {
    if (work == Work::forward)
      forward(o);
    else
      backward(o);
  }

 private:
  const ConvPlan* plan(ConvDirection direction) const {
    ConvProblem problem = problem_;
    problem.direction = direction;
    if (const ConvPlan* found = tools_.plans->find(problem)) return found;
    throw LibraryError("cuDNN has no deterministic way to run it in " +
                       std::string(precision_name(problem.precision)) + " and " +
                       std::string(layout_name(problem.layout)));
  }

  void forward(const Operands& o) const {
    const bool finish = bias_ || relu_ || narrow_output();
    void* output = narrow_output() ? static_cast<void*>(own_output()) : o.output;
    forward_->run(tools_.cudnn, widened_input(o), weights(o), output, library());
    if (!finish) return;
    ChannelCopy last = copy(output, o.output, view_.rows(), form_.padded_outputs, form_.outputs);
    last.bias = bias_ ? o.parameters[1] : nullptr;
    last.relu = relu_;
    copy_channels(tools_, last);
  }

  void backward(const Operands& o) const {
    const void* gradient = o.output_gradient;
    if (relu_ || narrow_output()) {
      ChannelCopy first =
          copy(gradient, own_output(), view_.rows(), form_.outputs, form_.padded_outputs);
      first.mask = relu_ ? o.output : nullptr;
      copy_channels(tools_, first);
      gradient = own_output();
    }
    if (o.gradient_modes[0] != GradientMode::none) input_gradient(o, gradient);
    // The input's own place in the workspace is free again: its gradient has been taken out.
    weight_gradient(o, gradient);
    if (bias_) bias_gradient(o, gradient);
  }

  void input_gradient(const Operands& o, const void* gradient) const {
    const bool add = o.gradient_modes[0] == GradientMode::add;
    const bool direct = !narrow_input() && add == library_adds_;
    void* target = direct ? static_cast<void*>(o.input_gradients[0]) : own_input();
    input_gradient_->run(tools_.cudnn, target, weights(o), gradient, library());
    if (direct) return;
    ChannelCopy out =
        copy(target, o.input_gradients[0], input_rows_, form_.padded_inputs, form_.inputs);
    out.add = add;
    copy_channels(tools_, out);
  }

  void weight_gradient(const Operands& o, const void* gradient) const {
    // cuDNN writes the gradient in the type of the weights; chunks are summed in fp32.
    const bool direct = form_.plain() && !o.add_parameter_gradients;
    void* target = direct ? static_cast<void*>(o.parameter_gradients[0]) : own_weights();
    weight_gradient_->run(tools_.cudnn, widened_input(o), target, gradient, library());
    if (!direct)
      unpack_gradient(tools_, form_, own_weights(), o.parameter_gradients[0],
                      o.add_parameter_gradients);
  }

  void bias_gradient(const Operands& o, const void* gradient) const {
    ChannelView view = view_;
    view.channels = static_cast<int>(form_.padded_outputs);
    with_type(problem_.values, [&]<class T>() {
      sum_channels<T, PlainSum>(
          tools_, view, sums(),
          BiasGradient{o.parameter_gradients[1], static_cast<int>(form_.outputs),
                       o.add_parameter_gradients},
          static_cast<const T*>(gradient));
    });
  }

  const void* widened_input(const Operands& o) const {
    if (!narrow_input()) return o.inputs[0];
    copy_channels(tools_,
                  copy(o.inputs[0], own_input(), input_rows_, form_.inputs, form_.padded_inputs));
    return own_input();
  }

  ChannelCopy copy(const void* from, void* to, std::int64_t rows, std::int64_t from_channels,
                   std::int64_t to_channels) const {
    ChannelCopy made;
    made.from = from;
    made.to = to;
    made.from_dtype = made.to_dtype = problem_.values;
    made.rows = rows;
    made.from_channels = static_cast<int>(from_channels);
    made.to_channels = static_cast<int>(to_channels);
    made.pixels = view_.innermost ? 1 : view_.pixels;
    return made;
  }

  const void* weights(const Operands& o) const {
    return form_.plain() ? static_cast<const void*>(o.parameters[0]) : o.packed;
  }

  bool narrow_input() const { return form_.inputs != form_.padded_inputs; }
  bool narrow_output() const { return form_.outputs != form_.padded_outputs; }

  std::size_t bytes_of(std::int64_t values, Dtype dtype) const {
    return aligned(static_cast<std::size_t>(values) * dtype_bytes(dtype));
  }
  std::size_t input_bytes() const {
    const bool used = narrow_input() || (adds_input_gradient_ && !library_adds_);
    return used ? bytes_of(input_rows_ * form_.padded_inputs, problem_.values) : 0;
  }
  std::size_t output_bytes() const {
    const bool used = narrow_output() || relu_;
    return used ? bytes_of(view_.rows() * form_.padded_outputs, problem_.values) : 0;
  }
  std::size_t weights_bytes() const {
    return bytes_of(form_.padded_outputs * form_.padded_inputs * form_.taps, form_.dtype);
  }
  std::size_t sums_bytes() const {
    ChannelView view = view_;
    view.channels = static_cast<int>(form_.padded_outputs);
    return bias_ ? aligned(partial_sums(view, tools_.processors) * sizeof(double)) : 0;
  }

  std::byte* own_input() const { return tools_.workspace; }
  std::byte* own_output() const { return own_input() + input_bytes(); }
  std::byte* own_weights() const { return own_output() + output_bytes(); }
  double* sums() const { return reinterpret_cast<double*>(own_weights() + weights_bytes()); }
  std::byte* library() const { return own_weights() + weights_bytes() + sums_bytes(); }

  const Tools& tools_;
  WeightForm form_;
  ChannelView view_;  // of the output
  std::int64_t input_rows_ = 0;
  bool bias_, relu_, wants_input_gradient_, adds_input_gradient_, library_adds_ = false;
  ConvProblem problem_;
  const ConvPlan *forward_ = nullptr, *input_gradient_ = nullptr, *weight_gradient_ = nullptr;
  std::size_t library_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_conv(const Site& site) { return std::make_unique<Conv>(site); }

}  // namespace regatta::cuda
