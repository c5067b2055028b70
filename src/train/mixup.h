// Mixup: each sample of a batch is blended with a partner of the same batch.
#pragma once

#include <cstdint>
#include <vector>

namespace regatta {

struct Mixing {
  float share = 0;                     // of the partner: drawn from Beta(alpha, alpha)
  std::vector<std::int64_t> partners;  // by position in the batch: a permutation
};

// A pure function, so that chunks that load on their own agree. `batch` counts micro-batches.
Mixing mixing_of(double alpha, std::uint64_t seed, std::uint64_t batch, std::int64_t count);

}  // namespace regatta
