// Convolution through oneDNN, with a relu after it where the graph was fused.
#include "backends/cpu/conv.h"

#include <algorithm>

#include "backends/cpu/elementwise.h"
#include "base/error.h"

namespace regatta::cpu {
namespace {

using dnnl::memory;
using Descriptor = memory::desc;
constexpr auto direct = dnnl::algorithm::convolution_direct;

// The geometry of a convolution in oneDNN's words.
struct Geometry {
  explicit Geometry(const Site& site)
      : bias(site.node.parameters.size() > 1), relu(site.node.attributes.flag("relu")) {
    const Shape& in = site.input(0).shape;
    const Shape& out = site.node.shape;
    const Shape& weight = site.graph.parameter(site.node.parameters[0]).shape;
    const auto [stride_h, stride_w] = site.node.attributes.pair("stride", 1);
    const auto [pad_h, pad_w] = site.node.attributes.pair("padding", 0);
    source = Descriptor({site.n, in.channels(), in.height(), in.width()}, memory::data_type::f32,
                        data_tag(site.input_layout(0)));
    target = Descriptor({site.n, out.channels(), out.height(), out.width()},
                        memory::data_type::f32, data_tag(site.layout()));
    weights = {weight[0], weight[1], weight[2], weight[3]};
    strides = {stride_h, stride_w};
    before = {pad_h, pad_w};
    // What oneDNN's kernels see beyond the lower right edge: just enough for the last window.
    after = {(out.height() - 1) * stride_h + weight[2] - in.height() - pad_h,
             (out.width() - 1) * stride_w + weight[3] - in.width() - pad_w};
    bias_desc = bias ? Descriptor({weight[0]}, memory::data_type::f32, memory::format_tag::x)
                     : Descriptor();
  }

  dnnl::convolution_forward::primitive_desc forward(const Descriptor& weights_desc) const {
    dnnl::primitive_attr attr = user_scratchpad();
    if (relu) {
      dnnl::post_ops ops;
      append_relu(ops);
      attr.set_post_ops(ops);
    }
    const auto training = dnnl::prop_kind::forward_training;
    if (bias)
      return describe<dnnl::convolution_forward>(attr, training, direct, source, weights_desc,
                                                 bias_desc, target, strides, before, after);
    return describe<dnnl::convolution_forward>(attr, training, direct, source, weights_desc, target,
                                               strides, before, after);
  }

  dnnl::convolution_backward_data::primitive_desc backward_data(
      const Descriptor& weights_desc) const {
    return describe_backward<dnnl::convolution_backward_data>(
        user_scratchpad(), plain_forward(), direct, source, weights_desc, target, strides, before,
        after);
  }

  dnnl::convolution_backward_weights::primitive_desc backward_weights(
      const Descriptor& weights_desc) const {
    if (bias)
      return describe_backward<dnnl::convolution_backward_weights>(
          user_scratchpad(), plain_forward(), direct, source, weights_desc, bias_desc, target,
          strides, before, after);
    return describe_backward<dnnl::convolution_backward_weights>(user_scratchpad(), plain_forward(),
                                                                 direct, source, weights_desc,
                                                                 target, strides, before, after);
  }

  // Backward descriptors want a hint that has no relu in it.
  dnnl::convolution_forward::primitive_desc plain_forward() const {
    Geometry without = *this;
    without.relu = false;
    return without.forward(any());
  }

  Descriptor any() const {
    return Descriptor(weights, memory::data_type::f32, memory::format_tag::any);
  }
  Descriptor plain() const {
    return Descriptor(weights, memory::data_type::f32, memory::format_tag::oihw);
  }

  Descriptor source, target, bias_desc;
  memory::dims weights, strides, before, after;
  bool bias, relu;
};

Launch reorder(const Descriptor& from, const Descriptor& to, bool add = false) {
  dnnl::primitive_attr attr;
  if (add) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  Launch launch(dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to, attr)));
  launch.argument(DNNL_ARG_FROM, from);
  launch.argument(DNNL_ARG_TO, to);
  return launch;
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class Conv : public Kernel {
 public:
  explicit Conv(const Site& site)
      : formats_(*site.conv_formats),
        geometry_(site),
        target_elements_(static_cast<std::size_t>(site.elements() * site.n)) {
    const auto described = geometry_.forward(formats_.forward);
    forward_ = Launch(dnnl::convolution_forward(described));
    forward_.argument(DNNL_ARG_SRC, geometry_.source);
    forward_.argument(DNNL_ARG_WEIGHTS, formats_.forward);
    forward_.argument(DNNL_ARG_DST, geometry_.target);
    forward_.argument(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
    if (geometry_.bias) forward_.argument(DNNL_ARG_BIAS, geometry_.bias_desc);
    library_scratch_ = described.scratchpad_desc().get_size();
  }

  std::size_t scratch_bytes() const override {
    // The gradient behind the relu, the input gradient to be added, and the weights' gradient live
    // side by side with the library's own scratch.
    return masked_bytes() + input_gradient_bytes() + weights_bytes() + aligned(library_scratch_);
  }

  void run(Work work, const Operands& operands, std::byte* scratch) override {
    if (work == Work::forward) {
      std::byte* library = scratch;
      if (geometry_.bias)
        forward_({operands.inputs[0], operands.packed, operands.output, library,
                  operands.parameters[1]});
      else
        forward_({operands.inputs[0], operands.packed, operands.output, library});
    } else {
      backward(operands, scratch);
    }
  }

  // Backward primitives are made when a first backward asks, so that evaluation never pays for them.
  void prepare(Work work) override {
    if (work == Work::forward || backward_weights_) return;
    const auto weights = geometry_.backward_weights(formats_.backward_weights);
    backward_weights_ = Launch(dnnl::convolution_backward_weights(weights));
    backward_weights_.argument(DNNL_ARG_SRC, geometry_.source);
    backward_weights_.argument(DNNL_ARG_DIFF_DST, geometry_.target);
    backward_weights_.argument(DNNL_ARG_DIFF_WEIGHTS, formats_.backward_weights);
    backward_weights_.argument(DNNL_ARG_SCRATCHPAD, weights.scratchpad_desc());
    if (geometry_.bias) backward_weights_.argument(DNNL_ARG_DIFF_BIAS, geometry_.bias_desc);
    library_scratch_ = std::max(library_scratch_, weights.scratchpad_desc().get_size());

    write_weights_ = reorder(formats_.backward_weights, formats_.plain);
    add_weights_ = reorder(formats_.backward_weights, formats_.plain, true);

    if (!formats_.wants_input_gradient) return;
    const auto data = geometry_.backward_data(formats_.backward_data);
    backward_data_ = Launch(dnnl::convolution_backward_data(data));
    backward_data_.argument(DNNL_ARG_DIFF_DST, geometry_.target);
    backward_data_.argument(DNNL_ARG_WEIGHTS, formats_.backward_data);
    backward_data_.argument(DNNL_ARG_DIFF_SRC, geometry_.source);
    backward_data_.argument(DNNL_ARG_SCRATCHPAD, data.scratchpad_desc());
    library_scratch_ = std::max(library_scratch_, data.scratchpad_desc().get_size());
  }

 private:
  void backward(const Operands& operands, std::byte* scratch) {
    std::byte* masked = scratch;
    std::byte* input_gradient = masked + masked_bytes();
    std::byte* weights_gradient = input_gradient + input_gradient_bytes();
    std::byte* library = weights_gradient + weights_bytes();

    const float* gradient = operands.output_gradient;
    if (geometry_.relu) {
      mask_by_sign(operands.output, gradient, reinterpret_cast<float*>(masked), target_elements_);
      gradient = reinterpret_cast<float*>(masked);
    }
    if (operands.gradient_modes[0] == GradientMode::write) {
      backward_data_({gradient, operands.packed + formats_.backward_offset,
                      operands.input_gradients[0], library});
    } else if (operands.gradient_modes[0] == GradientMode::add) {
      auto* own = reinterpret_cast<float*>(input_gradient);
      backward_data_({gradient, operands.packed + formats_.backward_offset, own, library});
      add_to(operands.input_gradients[0], own, input_gradient_bytes() / sizeof(float));
    }
    const std::size_t channels = static_cast<std::size_t>(geometry_.weights[0]);
    bias_gradient_.resize(channels);
    if (geometry_.bias)
      backward_weights_({operands.inputs[0], gradient, weights_gradient, library,
                         bias_gradient_.data()});
    else
      backward_weights_({operands.inputs[0], gradient, weights_gradient, library});
    Launch& unpacked = operands.add_parameter_gradients ? add_weights_ : write_weights_;
    unpacked({weights_gradient, operands.parameter_gradients[0]});
    if (!geometry_.bias) return;
    if (operands.add_parameter_gradients)
      add_to(operands.parameter_gradients[1], bias_gradient_.data(), channels);
    else
      std::ranges::copy(bias_gradient_, operands.parameter_gradients[1]);
  }

  std::size_t masked_bytes() const {
    return geometry_.relu ? aligned(target_elements_ * sizeof(float)) : 0;
  }
  std::size_t input_gradient_bytes() const {
    return formats_.wants_input_gradient ? aligned(geometry_.source.get_size()) : 0;
  }
  std::size_t weights_bytes() const { return aligned(formats_.backward_weights.get_size()); }

  const ConvFormats& formats_;
  Geometry geometry_;
  std::size_t target_elements_;
  std::size_t library_scratch_ = 0;
  std::vector<float> bias_gradient_;
  Launch forward_, backward_data_, backward_weights_, write_weights_, add_weights_;
};

}  // namespace

ConvFormats::ConvFormats(const Site& site)
    : wants_input_gradient(GradientFlow(site.graph).mode(site.node.id, 0) != GradientMode::none) {
  const Geometry geometry(site);
  plain = geometry.plain();
  forward = geometry.forward(geometry.any()).weights_desc();
  backward_weights = geometry.backward_weights(geometry.any()).diff_weights_desc();
  backward_offset = aligned(forward.get_size());
  if (wants_input_gradient)
    backward_data = geometry.backward_data(geometry.any()).weights_desc();
}

ConvPacker::ConvPacker(const ConvFormats& formats)
    : forward_(reorder(formats.plain, formats.forward)),
      backward_offset_(formats.backward_offset) {
  if (formats.wants_input_gradient) backward_ = reorder(formats.plain, formats.backward_data);
}

void ConvPacker::operator()(const float* weights, std::byte* packed) {
  forward_({weights, packed});
  if (backward_) backward_({weights, packed + backward_offset_});
}

std::unique_ptr<Kernel> make_conv(const Site& site) { return std::make_unique<Conv>(site); }

}  // namespace regatta::cpu
