#include "train/masking.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "graph/op.h"

namespace regatta {
namespace {

std::vector<std::int64_t> extents_of(const Shape& shape) {
  const auto extents = shape.extents();
  return {extents.begin(), extents.end()};
}

std::string text_of(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

}  // namespace

std::vector<ParameterId> maskable(const Graph& graph) {
  std::vector<ParameterId> found;
  for (const Node& node : graph.nodes())
    if (node.op->name == "conv" || node.op->name == "dense")
      found.push_back(node.parameters.front());
  std::ranges::sort(found, {}, &ParameterId::value);
  return found;
}

std::string model_mark(const Graph& graph) {
  std::map<std::string, std::string> shapes;  // by name: fusing may change the order
  for (const Parameter& parameter : graph.parameters())
    shapes[parameter.name] = parameter.shape.text();
  return graph.name() + "#" + sha256_hex(Json(shapes).dump()).substr(0, 8);
}

Mask whole_mask(const Graph& graph) {
  Mask mask{model_mark(graph), {}};
  for (const ParameterId id : maskable(graph)) {
    const Parameter& parameter = graph.parameter(id);
    mask.tensors.push_back(whole_tensor(parameter.name, extents_of(parameter.shape)));
  }
  return mask;
}

void require_fit(const Mask& mask, const Graph& graph, const std::string& from) {
  const auto fail = [&](const std::string& fault) {
    throw InputError("mask '" + from + "' " + fault);
  };
  if (mask.model != model_mark(graph))
    fail("is for " + mask.model + ", not for " + model_mark(graph) +
         ": the networks' parameters differ");
  const Mask fitting = whole_mask(graph);
  for (const MaskTensor& tensor : mask.tensors) {
    const MaskTensor* own = fitting.find(tensor.name);
    if (!own)
      fail("masks '" + tensor.name +
           "', which is not the weight of a convolution or dense layer of " + graph.name());
    if (own->shape != tensor.shape)
      fail("has '" + tensor.name + "' as " + text_of(tensor.shape) + ", the network as " +
           text_of(own->shape));
  }
}

Mask mask_for(const Graph& graph, const Mask& mask) {
  Mask fitting = whole_mask(graph);
  for (MaskTensor& tensor : fitting.tensors)
    if (const MaskTensor* given = mask.find(tensor.name); given && given->shape == tensor.shape)
      tensor.bits = given->bits;
  return fitting;
}

ParameterMasks parameter_masks(const Mask& mask, const Graph& graph) {
  ParameterMasks masks;
  for (const Parameter& parameter : graph.parameters()) {
    const MaskTensor* tensor = mask.find(parameter.name);
    masks.push_back(tensor ? tensor->bits : std::vector<std::uint8_t>{});
  }
  return masks;
}

void zero_masked(const Mask& mask, Weights& weights) {
  for (const MaskTensor& tensor : mask.tensors)
    if (const auto found = weights.find(tensor.name); found != weights.end())
      zero_masked(tensor, found->second);
}

void zero_masked(const Mask& mask, TensorFile& file) {
  for (NamedTensor& stored : file.tensors)
    for (const MaskTensor& tensor : mask.tensors) {
      const bool of_it = stored.name == tensor.name || stored.name.starts_with(tensor.name + ".");
      if (!of_it || stored.shape != tensor.shape || stored.dtype != Dtype::f32) continue;
      std::vector<float> values(static_cast<std::size_t>(tensor.count()));
      std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
      zero_masked(tensor, values);
      std::memcpy(stored.bytes.data(), values.data(), stored.bytes.size());
    }
}

}  // namespace regatta
