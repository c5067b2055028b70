// Nodes that slide a window over an image, and those that pad or resize it.
#include <algorithm>
#include <cmath>

#include "models/onnx_importer.h"

namespace regatta {
namespace {

using Extents = std::vector<std::int64_t>;

// What no window exceeds; so that no sum of sizes overflows.
bool fits(std::int64_t extent) { return extent >= -(1 << 15) && extent <= 1 << 15; }

// top, left, bottom, right; what the file leaves to auto_pad is computed.
Extents pads_of(const OnnxNode& node, const Shape& in, const Extents& kernel, const Extents& stride,
                const Extents& dilation) {
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return node.list("pads", {0, 0, 0, 0});
  Extents pads{0, 0, 0, 0};
  if (automatic == "VALID") return pads;
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    node.fail("its auto_pad '" + automatic.substr(0, 40) + "' is unknown");
  const std::int64_t size[] = {in.height(), in.width()};
  for (std::size_t i = 0; i < 2; ++i) {
    if (stride[i] < 1 || stride[i] > 1 << 15 || !fits(kernel[i]) || !fits(dilation[i]))
      node.fail("its window is out of range");
    const std::int64_t places = (size[i] + stride[i] - 1) / stride[i];
    const std::int64_t all = std::max<std::int64_t>(
        (places - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - size[i], 0);
    pads[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    pads[i + 2] = all - pads[i];
  }
  return pads;
}

// A pair where both sides are alike, as networks are usually written.
Extents short_form(const Extents& pads) {
  return pads[0] == pads[2] && pads[1] == pads[3] ? Extents{pads[0], pads[1]} : pads;
}

Extents sum(const OnnxNode& node, Extents pads, const Extents& zeros) {
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (!fits(pads[i])) node.fail("its padding is out of range");
    pads[i] += zeros[i];
  }
  return pads;
}

}  // namespace

void OnnxImporter::add_conv(const OnnxNode& node) {
  const OnnxValue from = value_input(node, 0);
  const Shape& in = image_input(node);
  const OnnxTensor& weight = float_input(node, 1, "weight");
  if (weight.extents.size() != 4)
    node.fail("its weight is " + weight.text() + "; only flat images are supported");
  const Extents kernel{weight.extents[2], weight.extents[3]};
  if (node.list("kernel_shape", kernel) != kernel)
    node.fail("its kernel_shape is not that of its weight");
  const Extents stride = node.list("strides", {1, 1}), dilation = node.list("dilations", {1, 1});
  const Extents pads = sum(node, pads_of(node, in, kernel, stride, dilation), from.zeros);
  const bool bias = node.has_input(2);
  const std::string name = layer_name(node, "conv", node.proto().input(1));
  hold(name + ".weight", weight.extents, weight.floats);
  if (bias) {
    const OnnxTensor& numbers = float_input(node, 2, "bias");
    hold(name + ".bias", numbers.extents, numbers.floats);
  }
  define(node, {add_op(node, "conv", name, {from.id},
                       {{"channels", weight.extents[0]},
                        {"kernel", kernel},
                        {"stride", stride},
                        {"padding", short_form(pads)},
                        {"dilation", dilation},
                        {"groups", node.integer("group", 1)},
                        {"bias", std::int64_t{bias}}})});
}

// --- pooling ---

Attributes OnnxImporter::window(const OnnxNode& node, const Extents& zeros) {
  const Shape& in = image_input(node);
  if (!node.find("kernel_shape")) node.fail("it lacks its kernel_shape");
  const Extents kernel = node.list("kernel_shape", {1, 1});
  const Extents stride = node.list("strides", {1, 1}), dilation = node.list("dilations", {1, 1});
  const Extents pads = sum(node, pads_of(node, in, kernel, stride, dilation), zeros);
  return {{"kernel", kernel},
          {"stride", stride},
          {"padding", short_form(pads)},
          {"ceil", std::int64_t{node.integer("ceil_mode", 0) != 0}}};
}

void OnnxImporter::add_max_pool(const OnnxNode& node) {
  const NodeId from = plain_input(node, 0);
  Attributes attributes = window(node, {0, 0, 0, 0});
  attributes.set("dilation", node.list("dilations", {1, 1}));
  const std::string name = unique(node.proto().name(), "max_pool");
  define(node, {add_op(node, "max_pool", name, {from}, std::move(attributes))});
}

void OnnxImporter::add_average_pool(const OnnxNode& node) {
  const OnnxValue from = value_input(node, 0);
  if (node.list("dilations", {1, 1}) != Extents{1, 1}) node.fail("dilation is not supported");
  Attributes attributes = window(node, from.zeros);
  // Zeros that another node lays around the image count as values.
  const bool count = from.padded() || node.integer("count_include_pad", 0) != 0;
  if (from.padded() && (attributes.flag("ceil") || node.list("pads", {0, 0, 0, 0}) != Extents(4)))
    node.fail("padding of its own, or ceil_mode, behind a Pad is not supported");
  attributes.set("count_padding", std::int64_t{count});
  const std::string name = unique(node.proto().name(), "average_pool");
  define(node, {add_op(node, "average_pool", name, {from.id}, std::move(attributes))});
}

// A mean over the image: a vector where it is flattened at once, else an image of one pixel.
void OnnxImporter::pool_all(const OnnxNode& node, bool keeps_image) {
  image_input(node);
  const NodeId from = plain_input(node, 0);
  const std::string& output = node.proto().output_size() > 0 ? node.proto().output(0) : "";
  const auto readers = readers_.find(output);
  const bool flattened =
      readers != readers_.end() && output != in_.output(0).name() &&
      std::ranges::all_of(readers->second, [](const onnx::NodeProto* reader) {
        const std::string& type = reader->op_type();
        return type == "Flatten" || type == "Reshape" || type == "Squeeze" || type == "Shape";
      });
  if (flattened || !keeps_image) {
    const std::string name = unique(node.proto().name(), "global_average_pool");
    return define(node, {add_op(node, "global_average_pool", name, {from}, {})});
  }
  const std::string name = unique(node.proto().name(), "adaptive_average_pool");
  define(node, {add_op(node, "adaptive_average_pool", name, {from}, {{"output", Extents{1, 1}}})});
}

void OnnxImporter::add_global_pool(const OnnxNode& node) { pool_all(node, true); }

void OnnxImporter::add_reduce_mean(const OnnxNode& node) {
  Extents axes = node.find("axes") || !node.has_input(1) ? node.list("axes", {0, 0})
                                                         : whole_input(node, 1, "axes");
  for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::ranges::sort(axes);
  if (axes != Extents{2, 3}) node.fail("only the mean over height and width is supported");
  pool_all(node, node.integer("keepdims", 1) != 0);
}

// Repeats pixels, as pooling to more bins than pixels does.
void OnnxImporter::add_resize(const OnnxNode& node) {
  const Shape& in = image_input(node);
  const OnnxTensor& scales = float_input(node, 2, "scales");
  const auto factor = [&](std::size_t i) {
    const float scale = scales.size() == 4 ? scales.floats[i] : 0;
    const bool fine = scale >= 1 && scale <= 1 << 15 && scale == std::floor(scale);
    return fine ? static_cast<std::int64_t>(scale) : 0;
  };
  const bool nearest = node.text("mode", "nearest") == "nearest" &&
                       node.text("coordinate_transformation_mode", "") == "asymmetric" &&
                       node.text("nearest_mode", "") == "floor";
  if (!nearest || factor(0) != 1 || factor(1) != 1 || factor(2) < 1 || factor(3) < 1)
    node.fail("only the repetition of pixels is supported");
  add_plain(node, "adaptive_average_pool",
            {{"output", Extents{in.height() * factor(2), in.width() * factor(3)}}});
}

// Zeros around an image wait for the operator that reads it.
void OnnxImporter::add_pad(const OnnxNode& node) {
  const OnnxValue from = value_input(node, 0);
  Extents pads;
  if (const onnx::AttributeProto* old_form = node.find("pads"))
    pads.assign(old_form->ints().begin(), old_form->ints().end());
  else
    pads = whole_input(node, 1, "pads");
  const double filler = scalar_input(node, 2, "value", node.real("value", 0));
  const bool zeros = node.text("mode", "constant") == "constant" && filler == 0;
  const bool inside =
      std::ranges::all_of(pads, [](std::int64_t each) { return each >= 0 && each <= 1 << 15; });
  if (!zeros || !inside || from.padded()) node.fail("only padding with zeros, once, is supported");
  if (std::ranges::all_of(pads, [](std::int64_t each) { return each == 0; }))
    return define(node, OnnxValue(from));
  if (pads.size() != 8 || pads[0] != 0 || pads[1] != 0 || pads[4] != 0 || pads[5] != 0)
    node.fail("only the padding of height and width is supported");
  define(node, OnnxValue{from.id, {pads[2], pads[3], pads[6], pads[7]}});
}

}  // namespace regatta
