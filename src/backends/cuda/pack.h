// The form weights have for the kernels: in the values' type, a convolution's in the values'
// layout.
#pragma once

#include <cstdint>

#include "backends/cuda/kernel.h"

namespace regatta::cuda {

// How a weight lies. Plain: outputs x inputs x taps in fp32. Packed: in `dtype`, and with channels
// last outputs x taps x inputs, which may be padded with zeros.
struct WeightForm {
  Dtype dtype = Dtype::f32;
  bool channels_last = false;
  std::int64_t outputs = 0, inputs = 0, taps = 1;
  std::int64_t packed_inputs = 0;

  std::int64_t elements() const { return outputs * inputs * taps; }
  std::int64_t packed_elements() const { return outputs * packed_inputs * taps; }
  // The plain weight already is what kernels read.
  bool plain() const;
  std::size_t packed_bytes() const;  // 0 where plain
};

// The form of a convolution's or a dense layer's weight; empty where the node has none.
WeightForm weight_form(const Graph& graph, const Node& node, Layout layout, Precision precision);

// A packed gradient, in its own `dtype`, written or added to the plain one; padding is left out.
void unpack_gradient(const Tools& tools, const WeightForm& form, const std::byte* packed,
                     float* gradient, bool add);

// Packs the weights of several nodes, as many as fit a kernel's arguments with one launch.
void pack_weights(const Tools& tools, std::span<const WeightForm> forms,
                  std::span<const PackItem> items);

}  // namespace regatta::cuda
