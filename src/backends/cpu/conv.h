// How a convolution's weights lie for its primitives: chosen once per node, whatever the chunk.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn.h"

namespace regatta::cpu {

class ConvFormats {
 public:
  // Lets oneDNN choose for `site.n` samples; other chunk sizes follow.
  explicit ConvFormats(const Site& site);

  dnnl::memory::desc plain, forward, backward_data, backward_weights;
  std::size_t backward_offset = 0;  // of the backward copy among the packed bytes
  bool wants_input_gradient = false;
};

// Lays plain weights out for both passes. Used by one worker at a time.
class ConvPacker {
 public:
  explicit ConvPacker(const ConvFormats& formats);
  void operator()(const float* weights, std::byte* packed);

 private:
  Launch forward_, backward_;
  std::size_t backward_offset_;
};

}  // namespace regatta::cpu
