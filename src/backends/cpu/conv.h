// How a convolution is computed and how its weights lie for that: chosen once per node, whatever
// the chunk.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/weight_tiles.h"

namespace regatta::cpu {

// oneDNN's fast kernels want whole blocks of channels. Values are padded with zeros to whole blocks
// anyway, so the library is simply told the padded counts, and weights are padded to match.
class ConvFormats {
 public:
  // Lets oneDNN choose for `site.n` samples; other chunk sizes follow.
  explicit ConvFormats(const Site& site);

  // Weights as stored are outputs x inputs x pixels, where a filter has the inputs of its group;
  // the library sees the padded counts.
  std::int64_t outputs = 0, inputs = 0, pixels = 0, padded_outputs = 0, padded_inputs = 0;
  bool padded() const { return outputs != padded_outputs || inputs != padded_inputs; }

  dnnl::algorithm algorithm;  // direct, or Winograd's
  dnnl::memory::desc plain, forward, backward_data, backward_weights;
  // The same where they are tiles; where they are not, oneDNN reorders.
  std::optional<WeightTiles> forward_tiles, backward_data_tiles, backward_weights_tiles;
  bool bias = false, wants_input_gradient = false;

  // Offsets among the packed bytes: of the backward copy, the bias, and the end.
  std::size_t backward_offset = 0, bias_offset = 0, packed_bytes = 0;
};

// Lays plain parameters out for both passes. Used by one worker at a time.
class ConvPacker {
 public:
  explicit ConvPacker(const ConvFormats& formats);
  void operator()(const float* weights, const float* bias, std::byte* packed);

 private:
  void lay_out(const std::optional<WeightTiles>& tiles, Launch& reorder, const float* weights,
               std::byte* target);

  const ConvFormats& formats_;
  std::vector<float> padded_;  // the weights with zeros around, where oneDNN needs them
  Launch forward_, backward_;
};

}  // namespace regatta::cpu
