// The relu that convolution, dense and batch norm may carry as their last act ("relu" = 1).
#pragma once

#include <algorithm>
#include <vector>

#include "graph/op.h"

namespace regatta {

template <class T>
void apply_fused_relu(const ReferenceCall<T>& call) {
  if (!call.node->attributes.flag("relu")) return;
  const std::int64_t elements = call.n * call.node->shape.elements();
  for (std::int64_t i = 0; i < elements; ++i) call.output[i] = std::max(call.output[i], T{0});
}

// The gradient of what went into the relu; a plain copy where there is none.
template <class T>
std::vector<T> gradient_before_relu(const ReferenceCall<T>& call) {
  const std::int64_t elements = call.n * call.node->shape.elements();
  std::vector<T> gradient(call.output_gradient, call.output_gradient + elements);
  if (call.node->attributes.flag("relu"))
    for (std::int64_t i = 0; i < elements; ++i)
      if (!(call.output[i] > T{0})) gradient[static_cast<std::size_t>(i)] = T{0};
  return gradient;
}

}  // namespace regatta
