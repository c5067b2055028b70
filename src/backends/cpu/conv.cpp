// Convolution through oneDNN, with a relu after it where the graph was fused.
#include "backends/cpu/conv.h"

#include <algorithm>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/placement.h"
#include "base/error.h"
#include "ops/window.h"

namespace regatta::cpu {
namespace {

using dnnl::memory;
using Descriptor = memory::desc;
constexpr auto direct = dnnl::algorithm::convolution_direct;
constexpr auto winograd = dnnl::algorithm::convolution_winograd;

std::int64_t whole_blocks(std::int64_t channels, Layout layout) {
  const std::int64_t block = channel_block(layout);
  return (channels + block - 1) / block * block;
}

// How a convolution is put to oneDNN, whose fast kernels want whole blocks of channels.
enum class ConvForm {
  // Values are padded with zeros to whole blocks anyway, so the library is simply told the padded
  // counts, and weights are padded to match. The same for depthwise convolutions, whose padded
  // channels are groups of their own.
  padded,
  depthwise,
  // Groups of whole blocks: the counts as they are.
  grouped,
  // Other groups: values go through plain planes, which the library takes in any count.
  planes,
};

ConvForm form_of(const Site& site) {
  const std::int64_t groups = site.node.attributes.integer("groups", 1);
  const std::int64_t inputs = site.input(0).shape.channels(), outputs = site.node.shape.channels();
  const std::int64_t block = channel_block(site.layout());
  if (groups == 1) return ConvForm::padded;
  if (groups == inputs && groups == outputs) return ConvForm::depthwise;
  const bool whole = inputs / groups % block == 0 && outputs / groups % block == 0;
  return whole ? ConvForm::grouped : ConvForm::planes;
}

// The geometry of a convolution in oneDNN's words.
struct Geometry {
  Geometry(const Site& site, dnnl::algorithm by, std::int64_t samples)
      : algorithm(by),
        form(form_of(site)),
        bias(site.node.parameters.size() > 1),
        relu(site.node.attributes.flag("relu")) {
    const Shape& in = site.input(0).shape;
    const Shape& out = site.node.shape;
    const Window window = window_of(site.node, 1);
    const bool planes = form == ConvForm::planes;
    const Layout from = planes ? Layout::nchw : site.input_layout(0);
    const Layout to = planes ? Layout::nchw : site.layout();
    const std::int64_t inputs = whole_blocks(in.channels(), from);
    const std::int64_t outputs = whole_blocks(out.channels(), to);
    type = data_type(site.dtype());
    source = Descriptor({samples, inputs, in.height(), in.width()}, type, data_tag(from));
    target = Descriptor({samples, outputs, out.height(), out.width()}, type, data_tag(to));
    weights = {outputs, inputs, window.kernel.height, window.kernel.width};
    if (form != ConvForm::padded) {
      // Channels that only pad are groups too, where each channel is one.
      const std::int64_t groups =
          form == ConvForm::depthwise ? outputs : site.node.attributes.integer("groups", 1);
      weights = {groups, outputs / groups, inputs / groups, window.kernel.height,
                 window.kernel.width};
    }
    strides = {window.stride.height, window.stride.width};
    dilates = {window.dilation.height - 1, window.dilation.width - 1};
    before = {window.padding.height, window.padding.width};
    // What oneDNN's kernels see beyond the lower right edge: just enough for the last window.
    after = {(out.height() - 1) * window.stride.height + window.span().height - in.height() -
                 window.padding.height,
             (out.width() - 1) * window.stride.width + window.span().width - in.width() -
                 window.padding.width};
    bias_desc =
        bias ? Descriptor({outputs}, memory::data_type::f32, memory::format_tag::x) : Descriptor();
  }

  dnnl::convolution_forward::primitive_desc forward(const Descriptor& weights_desc) const {
    dnnl::primitive_attr attr = user_scratchpad();
    if (relu && !rectifies_afterwards()) {
      dnnl::post_ops ops;
      append_relu(ops);
      attr.set_post_ops(ops);
    }
    const auto training = dnnl::prop_kind::forward_training;
    if (bias)
      return describe<dnnl::convolution_forward>(attr, training, algorithm, source, weights_desc,
                                                 bias_desc, target, strides, dilates, before,
                                                 after);
    return describe<dnnl::convolution_forward>(attr, training, algorithm, source, weights_desc,
                                               target, strides, dilates, before, after);
  }

  dnnl::convolution_backward_data::primitive_desc backward_data(
      const Descriptor& weights_desc) const {
    return describe_backward<dnnl::convolution_backward_data>(
        user_scratchpad(), plain_forward(), algorithm, source, weights_desc, target, strides,
        dilates, before, after);
  }

  dnnl::convolution_backward_weights::primitive_desc backward_weights(
      const Descriptor& weights_desc) const {
    if (bias)
      return describe_backward<dnnl::convolution_backward_weights>(
          user_scratchpad(), plain_forward(), algorithm, source, weights_desc, bias_desc, target,
          strides, dilates, before, after);
    return describe_backward<dnnl::convolution_backward_weights>(
        user_scratchpad(), plain_forward(), algorithm, source, weights_desc, target, strides,
        dilates, before, after);
  }

  // Backward descriptors want a hint that has no relu in it.
  dnnl::convolution_forward::primitive_desc plain_forward() const {
    Geometry without = *this;
    without.relu = false;
    return without.forward(any());
  }

  // Values of one sample, with padding.
  std::int64_t source_values() const { return values_of_one(source); }
  std::int64_t target_values() const { return values_of_one(target); }
  static std::int64_t values_of_one(const Descriptor& values) {
    const memory::dims dims = dims_of(values);
    return dims[1] * dims[2] * dims[3];
  }

  // Winograd's kernels know no relu that lets NaNs through (append_relu).
  bool rectifies_afterwards() const { return relu && algorithm == winograd; }

  // Weights lie in the type of the values, their gradients and the parameters in fp32.
  Descriptor any() const { return Descriptor(weights, type, memory::format_tag::any); }
  Descriptor any_gradient() const {
    return Descriptor(weights, memory::data_type::f32, memory::format_tag::any);
  }
  Descriptor plain() const {
    return Descriptor(weights, memory::data_type::f32,
                      weights.size() == 5 ? memory::format_tag::goihw : memory::format_tag::oihw);
  }

  dnnl::algorithm algorithm;
  ConvForm form;
  memory::data_type type = memory::data_type::f32;  // of values and packed weights
  Descriptor source, target, bias_desc;
  memory::dims weights, strides, dilates, before, after;
  bool bias, relu;
};

// Winograd's algorithm multiplies a quarter as often as the direct one. In return it transforms
// each value, which pays if the value is multiplied by many channels, and at every call the weights
// to four times their size, which pays if many pixels use them. docs/cpu.md has the measurements.
bool winograd_pays(const Geometry& geometry) {
  constexpr std::int64_t least_channels = 32, least_pixels = 512;
  const memory::dims output = dims_of(geometry.target);
  return geometry.type == memory::data_type::f32 && geometry.form == ConvForm::padded &&
         geometry.weights[2] == 3 && geometry.weights[3] == 3 &&
         geometry.strides == memory::dims{1, 1} && geometry.dilates == memory::dims{0, 0} &&
         std::min(geometry.weights[0], geometry.weights[1]) >= least_channels &&
         output[0] * output[2] * output[3] >= least_pixels;
}

dnnl::algorithm algorithm_for(const Site& site) {
  const Geometry geometry(site, winograd, site.n);
  if (!winograd_pays(geometry)) return direct;
  try {
    geometry.forward(geometry.any());
    geometry.backward_data(geometry.any());
    geometry.backward_weights(geometry.any_gradient());
    return winograd;
  } catch (const dnnl::error&) {  // the library has no such kernels for this processor or padding
    return direct;
  }
}

// Samples that Winograd's kernels take in one call: the scratch memory of the passes over values
// grows with them, to many times the values themselves, and beyond so many pixels speed does not.
std::int64_t samples_at_once(const Site& site, dnnl::algorithm algorithm) {
  constexpr std::int64_t enough_pixels = 16384;
  if (algorithm == direct) return site.n;
  const std::int64_t pixels = site.node.shape.height() * site.node.shape.width();
  return std::clamp<std::int64_t>((enough_pixels + pixels - 1) / pixels, 1, site.n);
}

Launch reorder(const Descriptor& from, const Descriptor& to, bool add = false) {
  dnnl::primitive_attr attr;
  if (add) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  Launch launch(dnnl::reorder::primitive_desc(engine(), from, engine(), to, attr));
  launch.argument(DNNL_ARG_FROM, from);
  launch.argument(DNNL_ARG_TO, to);
  return launch;
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

template <class T>
class Conv : public Kernel {
 public:
  explicit Conv(const Site& site)
      : formats_(*site.conv_formats),
        n_(site.n),
        at_once_(samples_at_once(site, formats_.algorithm)),
        geometry_(site, formats_.algorithm, n_),
        full_piece_(site, formats_.algorithm, at_once_),
        last_piece_(site, formats_.algorithm, n_ % at_once_ > 0 ? n_ % at_once_ : at_once_),
        source_place_(site.input(0).shape, site.input_layout(0)),
        target_place_(site.node.shape, site.layout()) {
    if (n_ > at_once_) forward_.full = forward_launch(full_piece_);
    forward_.last = forward_launch(last_piece_);
  }

  std::size_t scratch_bytes() const override {
    // Side by side: input and output (or its gradient) as planes, the gradient behind the relu, an
    // input gradient to be added or to come from planes, the gradients of weights (as the library
    // leaves them, then plain) and bias, the library's own.
    return source_planes_bytes() + target_planes_bytes() + masked_bytes() + input_gradient_bytes() +
           weights_bytes() + plain_bytes() + bias_bytes() + aligned(library_scratch_);
  }

  void run(Work work, const Operands& operands, std::byte* scratch) override {
    auto* source_planes = reinterpret_cast<T*>(scratch);
    auto* target_planes = reinterpret_cast<T*>(scratch + source_planes_bytes());
    std::byte* rest = scratch + source_planes_bytes() + target_planes_bytes();
    const T* source = values_of<T>(operands.inputs[0]);
    if (planes() && work != Work::input_gradient) {
      to_planes(source_place_, n_, source, source_planes);
      source = source_planes;
    }
    if (work != Work::forward) {
      backward(work, operands, source, target_planes, rest);
      return;
    }
    T* output = values_of<T>(operands.output);
    T* target = planes() ? target_planes : output;
    in_pieces(forward_, [&](Launch& launch, std::int64_t first) {
      const T* from = source + first * geometry_.source_values();
      T* to = target + first * geometry_.target_values();
      if (geometry_.bias)
        launch({from, operands.packed, to, rest, operands.packed + formats_.bias_offset});
      else
        launch({from, operands.packed, to, rest});
    });
    if (geometry_.rectifies_afterwards()) rectify(target, target_elements());
    if (planes()) from_planes(target_place_, n_, target, output, GradientMode::write);
  }

  // Backward primitives are described when a first backward asks, so that evaluation never pays
  // for them.
  void prepare(Work work) override {
    if (work == Work::forward || backward_weights_) return;
    backward_weights_ = launch_of(geometry_.backward_weights(formats_.backward_weights),
                                  {{DNNL_ARG_SRC, geometry_.source},
                                   {DNNL_ARG_DIFF_DST, geometry_.target},
                                   {DNNL_ARG_DIFF_WEIGHTS, formats_.backward_weights}});
    if (geometry_.bias) backward_weights_.argument(DNNL_ARG_DIFF_BIAS, geometry_.bias_desc);

    if (!formats_.backward_weights_tiles) {
      write_weights_ = reorder(formats_.backward_weights, formats_.plain);
      if (!formats_.padded())
        add_weights_ = reorder(formats_.backward_weights, formats_.plain, true);
    }

    if (!formats_.wants_input_gradient) return;
    if (n_ > at_once_) backward_data_.full = backward_data_launch(full_piece_);
    backward_data_.last = backward_data_launch(last_piece_);
  }

 private:
  // One primitive for each piece of the samples but the last, and one for the last.
  struct PieceLaunches {
    Launch full, last;
  };

  // Calls run(launch, first sample) for one piece of the samples after the other.
  template <class Run>
  void in_pieces(PieceLaunches& launches, const Run& run) const {
    for (std::int64_t first = 0; first < n_; first += at_once_)
      run(first + at_once_ < n_ ? launches.full : launches.last, first);
  }

  // A primitive with these arguments, in the order of their pointers, and the library's scratch
  // memory after them.
  template <class Described>
  Launch launch_of(const Described& described,
                   std::initializer_list<std::pair<int, Descriptor>> arguments) {
    Launch launch(described);
    for (const auto& [index, descriptor] : arguments) launch.argument(index, descriptor);
    launch.argument(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
    library_scratch_ = std::max(library_scratch_, described.scratchpad_desc().get_size());
    return launch;
  }

  Launch forward_launch(const Geometry& piece) {
    Launch launch =
        launch_of(piece.forward(formats_.forward), {{DNNL_ARG_SRC, piece.source},
                                                    {DNNL_ARG_WEIGHTS, formats_.forward},
                                                    {DNNL_ARG_DST, piece.target}});
    if (piece.bias) launch.argument(DNNL_ARG_BIAS, piece.bias_desc);
    return launch;
  }

  Launch backward_data_launch(const Geometry& piece) {
    return launch_of(piece.backward_data(formats_.backward_data),
                     {{DNNL_ARG_DIFF_DST, piece.target},
                      {DNNL_ARG_WEIGHTS, formats_.backward_data},
                      {DNNL_ARG_DIFF_SRC, piece.source}});
  }

  bool planes() const { return geometry_.form == ConvForm::planes; }

  void backward(Work work, const Operands& operands, const T* source, T* target_planes,
                std::byte* scratch) {
    std::byte* masked = scratch;
    std::byte* rest = masked + masked_bytes();
    const T* gradient = values_of<T>(operands.output_gradient);
    if (geometry_.relu) {
      mask_by_sign(values_of<T>(operands.output), gradient, reinterpret_cast<T*>(masked),
                   target_elements());
      gradient = reinterpret_cast<T*>(masked);
    }
    if (planes()) {
      to_planes(target_place_, n_, gradient, target_planes);
      gradient = target_planes;
    }
    if (gives_input_gradients(work)) give_input_gradient(operands, gradient, rest);
    if (gives_parameter_gradients(work)) give_weight_gradient(operands, source, gradient, rest);
  }

  void give_input_gradient(const Operands& operands, const T* gradient, std::byte* scratch) {
    std::byte* library =
        scratch + input_gradient_bytes() + weights_bytes() + plain_bytes() + bias_bytes();
    const std::byte* weights = operands.packed + formats_.backward_offset;
    const GradientMode mode = operands.gradient_modes[0];
    auto* own = reinterpret_cast<T*>(scratch);
    T* given = values_of<T>(operands.input_gradients[0]);
    const auto write_to = [&](T* target) {
      in_pieces(backward_data_, [&](Launch& launch, std::int64_t first) {
        launch({gradient + first * geometry_.target_values(), weights,
                target + first * geometry_.source_values(), library});
      });
    };
    if (mode == GradientMode::write && !planes()) {
      write_to(given);
    } else if (mode != GradientMode::none) {
      write_to(own);
      if (planes())
        from_planes(source_place_, n_, own, given, mode);
      else
        add_to(given, own, static_cast<std::size_t>(n_ * source_place_.size()));
    }
  }

  void give_weight_gradient(const Operands& operands, const T* source, const T* gradient,
                            std::byte* scratch) {
    std::byte* weights_gradient = scratch + input_gradient_bytes();
    auto* plain = reinterpret_cast<float*>(weights_gradient + weights_bytes());
    auto* bias = reinterpret_cast<float*>(weights_gradient + weights_bytes() + plain_bytes());
    std::byte* library = reinterpret_cast<std::byte*>(bias) + bias_bytes();
    if (geometry_.bias)
      backward_weights_({source, gradient, weights_gradient, library, bias});
    else
      backward_weights_({source, gradient, weights_gradient, library});

    const bool add = operands.add_parameter_gradients;
    if (formats_.backward_weights_tiles) {
      formats_.backward_weights_tiles->unpack(reinterpret_cast<float*>(weights_gradient),
                                              operands.parameter_gradients[0], add);
    } else if (formats_.padded()) {
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

  // The weights among padded plain weights.
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

  std::size_t target_elements() const {
    return static_cast<std::size_t>(n_ * target_place_.size());
  }
  std::size_t source_planes_bytes() const {
    return planes() ? aligned(geometry_.source.get_size()) : 0;
  }
  std::size_t target_planes_bytes() const {
    return planes() ? aligned(geometry_.target.get_size()) : 0;
  }
  std::size_t masked_bytes() const {
    return geometry_.relu ? aligned(target_elements() * sizeof(T)) : 0;
  }
  std::size_t input_gradient_bytes() const {
    return formats_.wants_input_gradient ? aligned(geometry_.source.get_size()) : 0;
  }
  std::size_t weights_bytes() const { return aligned(formats_.backward_weights.get_size()); }
  std::size_t plain_bytes() const {
    const bool reordered = formats_.padded() && !formats_.backward_weights_tiles;
    return reordered ? aligned(formats_.plain.get_size()) : 0;
  }
  std::size_t bias_bytes() const {
    return aligned(static_cast<std::size_t>(formats_.padded_outputs) * sizeof(float));
  }

  const ConvFormats& formats_;
  std::int64_t n_, at_once_;
  Geometry geometry_, full_piece_, last_piece_;
  Placement source_place_, target_place_;
  std::size_t library_scratch_ = 0;
  PieceLaunches forward_, backward_data_;
  Launch backward_weights_, write_weights_, add_weights_;
};

}  // namespace

ConvFormats::ConvFormats(const Site& site)
    : algorithm(algorithm_for(site)),
      wants_input_gradient(GradientFlow(site.graph).mode(site.node.id, 0) != GradientMode::none) {
  const Geometry geometry(site, algorithm, site.n);
  const Shape& stored = site.graph.parameter(site.node.parameters[0]).shape;
  outputs = stored[0];
  inputs = stored[1];
  pixels = stored[2] * stored[3];
  const bool grouped = geometry.form != ConvForm::padded;
  padded_outputs = grouped ? geometry.weights[0] * geometry.weights[1] : geometry.weights[0];
  padded_inputs = grouped ? geometry.weights[2] : geometry.weights[1];
  bias = geometry.bias;
  plain = geometry.plain();
  forward = geometry.forward(geometry.any()).weights_desc();
  backward_weights = geometry.backward_weights(geometry.any_gradient()).diff_weights_desc();
  if (wants_input_gradient) backward_data = geometry.backward_data(geometry.any()).weights_desc();
  if (geometry.form == ConvForm::padded) {
    const WeightCounts counts{outputs, inputs, pixels};
    forward_tiles = WeightTiles::of(forward, counts);
    backward_weights_tiles = WeightTiles::of(backward_weights, counts);
    if (wants_input_gradient) backward_data_tiles = WeightTiles::of(backward_data, counts);
  }
  backward_offset = aligned(forward.get_size());
  bias_offset = backward_offset + (wants_input_gradient ? aligned(backward_data.get_size()) : 0);
  packed_bytes =
      bias_offset + (bias ? aligned(static_cast<std::size_t>(padded_outputs) * sizeof(float)) : 0);
}

ConvPacker::ConvPacker(const ConvFormats& formats) : formats_(formats) {
  const bool backward = formats.wants_input_gradient && !formats.backward_data_tiles;
  if (!formats.forward_tiles) forward_ = reorder(formats.plain, formats.forward);
  if (backward) backward_ = reorder(formats.plain, formats.backward_data);
  if (formats.padded() && (backward || !formats.forward_tiles))
    padded_.resize(formats.plain.get_size() / sizeof(float));
}

void ConvPacker::lay_out(const std::optional<WeightTiles>& tiles, Launch& reorder,
                         const float* weights, std::byte* target) {
  if (tiles)
    tiles->pack(weights, reinterpret_cast<float*>(target));
  else
    reorder({padded_.empty() ? weights : padded_.data(), target});
}

void ConvPacker::operator()(const float* weights, const float* bias, std::byte* packed) {
  if (!padded_.empty()) {
    const auto row = static_cast<std::size_t>(formats_.inputs * formats_.pixels);
    for (std::int64_t o = 0; o < formats_.outputs; ++o)
      std::copy_n(weights + static_cast<std::size_t>(o) * row, row,
                  padded_.data() + o * formats_.padded_inputs * formats_.pixels);
  }
  lay_out(formats_.forward_tiles, forward_, weights, packed);
  if (formats_.wants_input_gradient)
    lay_out(formats_.backward_data_tiles, backward_, weights, packed + formats_.backward_offset);
  if (!formats_.bias) return;
  auto* target = reinterpret_cast<float*>(packed + formats_.bias_offset);
  std::fill_n(target, formats_.padded_outputs, 0.0f);
  std::copy_n(bias, formats_.outputs, target);
}

std::unique_ptr<Kernel> make_conv(const Site& site) {
  if (site.planar()) return make_thin_conv(site);
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<Conv<T>>(site);
  });
}

}  // namespace regatta::cpu
