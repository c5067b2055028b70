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

std::int64_t whole_blocks(std::int64_t channels, Layout layout) {
  const std::int64_t block = channel_block(layout);
  return (channels + block - 1) / block * block;
}

// The geometry of a convolution in oneDNN's words.
struct Geometry {
  explicit Geometry(const Site& site)
      : bias(site.node.parameters.size() > 1), relu(site.node.attributes.flag("relu")) {
    const Shape& in = site.input(0).shape;
    const Shape& out = site.node.shape;
    const Shape& weight = site.graph.parameter(site.node.parameters[0]).shape;
    const auto [stride_h, stride_w] = site.node.attributes.pair("stride", 1);
    const auto [pad_h, pad_w] = site.node.attributes.pair("padding", 0);
    const std::int64_t inputs = whole_blocks(in.channels(), site.input_layout(0));
    const std::int64_t outputs = whole_blocks(out.channels(), site.layout());
    source = Descriptor({site.n, inputs, in.height(), in.width()}, memory::data_type::f32,
                        data_tag(site.input_layout(0)));
    target = Descriptor({site.n, outputs, out.height(), out.width()}, memory::data_type::f32,
                        data_tag(site.layout()));
    weights = {outputs, inputs, weight[2], weight[3]};
    strides = {stride_h, stride_w};
    before = {pad_h, pad_w};
    // What oneDNN's kernels see beyond the lower right edge: just enough for the last window.
    after = {(out.height() - 1) * stride_h + weight[2] - in.height() - pad_h,
             (out.width() - 1) * stride_w + weight[3] - in.width() - pad_w};
    bias_desc =
        bias ? Descriptor({outputs}, memory::data_type::f32, memory::format_tag::x) : Descriptor();
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
    return describe_backward<dnnl::convolution_backward_data>(user_scratchpad(), plain_forward(),
                                                              direct, source, weights_desc, target,
                                                              strides, before, after);
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
    // Side by side: the gradient behind the relu, an input gradient to be added, the gradients of
    // weights (as the library leaves them, then plain) and bias, the library's own.
    return masked_bytes() + input_gradient_bytes() + weights_bytes() + plain_bytes() +
           bias_bytes() + aligned(library_scratch_);
  }

  void run(Work work, const Operands& operands, std::byte* scratch) override {
    if (work == Work::forward) {
      std::byte* library = scratch;
      if (geometry_.bias)
        forward_({operands.inputs[0], operands.packed, operands.output, library,
                  operands.packed + formats_.bias_offset});
      else
        forward_({operands.inputs[0], operands.packed, operands.output, library});
    } else {
      backward(operands, scratch);
    }
  }

  // Backward primitives are made when a first backward asks, so that evaluation never pays for
  // them.
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
    if (!formats_.padded()) add_weights_ = reorder(formats_.backward_weights, formats_.plain, true);

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
    auto* plain = reinterpret_cast<float*>(weights_gradient + weights_bytes());
    auto* bias = reinterpret_cast<float*>(weights_gradient + weights_bytes() + plain_bytes());
    std::byte* library = reinterpret_cast<std::byte*>(bias) + bias_bytes();

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
    if (geometry_.bias)
      backward_weights_({operands.inputs[0], gradient, weights_gradient, library, bias});
    else
      backward_weights_({operands.inputs[0], gradient, weights_gradient, library});

    const bool add = operands.add_parameter_gradients;
    if (formats_.padded()) {
      write_weights_({weights_gradient, plain});
      take_real_part(plain, operands.parameter_gradients[0], add);
    } else {
      Launch& unpack = add ? add_weights_ : write_weights_;
      unpack({weights_gradient, operands.parameter_gradients[0]});
    }
    if (!geometry_.bias) return;
    const auto outputs = static_cast<std::size_t>(formats_.outputs);
    if (add)
      add_to(operands.parameter_gradients[1], bias, outputs);
    else
      std::copy_n(bias, outputs, operands.parameter_gradients[1]);
  }

  // Of padded plain weights, those that are weights.
  void take_real_part(const float* padded, float* target, bool add) const {
    const auto row = static_cast<std::size_t>(formats_.inputs * formats_.pixels);
    for (std::int64_t o = 0; o < formats_.outputs; ++o) {
      const float* source = padded + o * formats_.padded_inputs * formats_.pixels;
      float* to = target + o * formats_.inputs * formats_.pixels;
      if (add)
        add_to(to, source, row);
      else
        std::copy_n(source, row, to);
    }
  }

  std::size_t masked_bytes() const {
    return geometry_.relu ? aligned(target_elements_ * sizeof(float)) : 0;
  }
  std::size_t input_gradient_bytes() const {
    return formats_.wants_input_gradient ? aligned(geometry_.source.get_size()) : 0;
  }
  std::size_t weights_bytes() const { return aligned(formats_.backward_weights.get_size()); }
  std::size_t plain_bytes() const {
    return formats_.padded() ? aligned(formats_.plain.get_size()) : 0;
  }
  std::size_t bias_bytes() const {
    return aligned(static_cast<std::size_t>(formats_.padded_outputs) * sizeof(float));
  }

  const ConvFormats& formats_;
  Geometry geometry_;
  std::size_t target_elements_;
  std::size_t library_scratch_ = 0;
  Launch forward_, backward_data_, backward_weights_, write_weights_, add_weights_;
};

}  // namespace

ConvFormats::ConvFormats(const Site& site)
    : wants_input_gradient(GradientFlow(site.graph).mode(site.node.id, 0) != GradientMode::none) {
  const Geometry geometry(site);
  const Shape& stored = site.graph.parameter(site.node.parameters[0]).shape;
  outputs = stored[0];
  inputs = stored[1];
  pixels = stored[2] * stored[3];
  padded_outputs = geometry.weights[0];
  padded_inputs = geometry.weights[1];
  bias = geometry.bias;
  plain = geometry.plain();
  forward = geometry.forward(geometry.any()).weights_desc();
  backward_weights = geometry.backward_weights(geometry.any()).diff_weights_desc();
  if (wants_input_gradient) backward_data = geometry.backward_data(geometry.any()).weights_desc();
  backward_offset = aligned(forward.get_size());
  bias_offset = backward_offset + (wants_input_gradient ? aligned(backward_data.get_size()) : 0);
  packed_bytes =
      bias_offset + (bias ? aligned(static_cast<std::size_t>(padded_outputs) * sizeof(float)) : 0);
}

ConvPacker::ConvPacker(const ConvFormats& formats)
    : formats_(formats), forward_(reorder(formats.plain, formats.forward)) {
  if (formats.wants_input_gradient) backward_ = reorder(formats.plain, formats.backward_data);
  if (formats.padded()) padded_.resize(formats.plain.get_size() / sizeof(float));
}

void ConvPacker::operator()(const float* weights, const float* bias, std::byte* packed) {
  const float* source = weights;
  if (formats_.padded()) {
    const auto row = static_cast<std::size_t>(formats_.inputs * formats_.pixels);
    for (std::int64_t o = 0; o < formats_.outputs; ++o)
      std::copy_n(weights + static_cast<std::size_t>(o) * row, row,
                  padded_.data() + o * formats_.padded_inputs * formats_.pixels);
    source = padded_.data();
  }
  forward_({source, packed});
  if (backward_) backward_({source, packed + formats_.backward_offset});
  if (!formats_.bias) return;
  auto* target = reinterpret_cast<float*>(packed + formats_.bias_offset);
  std::fill_n(target, formats_.padded_outputs, 0.0f);
  std::copy_n(bias, formats_.outputs, target);
}

std::unique_ptr<Kernel> make_conv(const Site& site) { return std::make_unique<Conv>(site); }

}  // namespace regatta::cpu
