#include "tickets/line.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace regatta::tickets {

TensorFile between(const TensorFile& from, const TensorFile& to, double share) {
  TensorFile result = from;
  for (NamedTensor& tensor : result.tensors) {
    const NamedTensor* other = to.find(tensor.name);
    if (!other || other->shape != tensor.shape || other->dtype != tensor.dtype)
      throw InputError("'" + tensor.name + "' is not the same tensor in both runs");
    if (tensor.dtype != Dtype::f32) continue;
    for (std::size_t at = 0; at + sizeof(float) <= tensor.bytes.size(); at += sizeof(float)) {
      float a, b;
      std::memcpy(&a, tensor.bytes.data() + at, sizeof a);
      std::memcpy(&b, other->bytes.data() + at, sizeof b);
      const auto mixed = static_cast<float>((1 - share) * a + share * b);
      std::memcpy(tensor.bytes.data() + at, &mixed, sizeof mixed);
    }
  }
  return result;
}

double barrier(const std::vector<double>& errors) {
  return std::ranges::max(errors) - (errors.front() + errors.back()) / 2;
}

}  // namespace regatta::tickets
