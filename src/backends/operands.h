// backends/: how instructions are carried out on a kind of device: `cpu/` with oneDNN, `cuda/` with
// cuDNN. A backend gets pointers and sizes; it knows neither tasks nor StarPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/normalisation.h"
#include "base/target.h"
#include "graph/program.h"

namespace regatta {

// All that one instruction reads and writes, for `n` samples of a chunk. Null where absent.
struct Operands {
  std::int64_t n = 0;
  Pass pass = Pass::train;

  std::array<const float*, most_inputs> inputs{};
  float* output = nullptr;
  const float* output_gradient = nullptr;
  std::array<float*, most_inputs> input_gradients{};
  std::array<GradientMode, most_inputs> gradient_modes{};

  std::array<const float*, 2> parameters{};  // plain, as stored: weight, bias
  const std::byte* packed = nullptr;         // as this backend's pack() left them
  std::array<float*, 2> parameter_gradients{};
  bool add_parameter_gradients = false;  // a chunk before this one has written the slot

  std::byte* stash = nullptr;
  std::array<float*, 3> states{};
  // Merged, shared by all chunks; where statistics are those of groups, this chunk's, group by
  // group.
  float* statistics = nullptr;
  double* partials = nullptr;  // this chunk's own sums; of each of its groups, where there are any

  const std::byte* samples = nullptr;  // the input's instruction
  const Target* targets = nullptr;     // the loss's
  float loss_scale = 0;                // one over the samples of the whole step

  // What random operators draw from, so that the cut has no say in it.
  std::uint64_t seed = 0;         // the run's
  std::uint64_t step = 0;         // micro-batches done before this one
  std::int64_t first_sample = 0;  // where in the global batch the chunk's first sample stands
};

// A chunk's sums at a meeting point and how many values they are over.
struct PartialSums {
  const double* rows = nullptr;
  double count = 0;
};

// What a chunk leaves of its groups of samples: for each in turn the mean and the squared
// deviations of every channel, a row of padded_channels() doubles each.
struct GroupSums {
  const double* rows = nullptr;
  std::int64_t samples = 0;  // of the chunk; its last group may be short
};

}  // namespace regatta
