// Convolution weights in tiles, as oneDNN's kernels keep them, from and to the plain order in which
// parameters and their gradients are stored. oneDNN's own reorders of these forms move 1 to 3 GB/s.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/cpu/onednn.h"

namespace regatta::cpu {

// Plain weights are outputs x inputs x pixels. A tile is block x block channels of one pixel.
struct WeightCounts {
  std::int64_t outputs = 0, inputs = 0;  // the tiles are padded to whole blocks of both
  std::int64_t pixels = 0;
};

class WeightTiles {
 public:
  // Nothing where `desc` keeps weights in a form that is not of these.
  static std::optional<WeightTiles> of(const dnnl::memory::desc& desc, const WeightCounts& counts);

  // Zeros go where tiles have no weights.
  void pack(const float* plain, float* tiles) const;
  // `add`: to what is there.
  void unpack(const float* tiles, float* plain, bool add) const;

  struct Order {
    int block;          // channels of a tile, each way
    bool inputs_outer;  // all output tiles of an input tile lie together, not the other way round
    bool inputs_inner;  // inside a tile, inputs lie side by side, not outputs
  };

 private:
  WeightTiles(const Order& order, const WeightCounts& counts) : order_(order), counts_(counts) {}

  Order order_;
  WeightCounts counts_;
};

}  // namespace regatta::cpu
