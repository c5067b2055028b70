#include "tickets/export.h"

#include <cstring>
#include <utility>

#include "base/error.h"

namespace regatta::tickets {

TensorFile for_pytorch(TensorFile weights, const Mask& mask) {
  zero_masked(mask, weights);
  TensorFile pruned;
  pruned.metadata = std::move(weights.metadata);
  for (NamedTensor& tensor : weights.tensors) {
    const MaskTensor* masked = mask.find(tensor.name);
    if (!masked) {
      pruned.tensors.push_back(std::move(tensor));
      continue;
    }
    if (tensor.shape != masked->shape) throw Error("mask of another shape: " + tensor.name);
    // A mask is a buffer of the weight's type.
    std::vector<float> ones(static_cast<std::size_t>(masked->count()), 1.0f);
    zero_masked(*masked, ones);
    NamedTensor bits{tensor.name + "_mask", Dtype::f32, tensor.shape,
                     std::string(ones.size() * sizeof(float), '\0')};
    std::memcpy(bits.bytes.data(), ones.data(), bits.bytes.size());
    tensor.name += "_orig";
    pruned.tensors.push_back(std::move(tensor));
    pruned.tensors.push_back(std::move(bits));
  }
  return pruned;
}

}  // namespace regatta::tickets
