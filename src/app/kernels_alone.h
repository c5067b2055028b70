// What cores reach by themselves, on every core at once and with nobody to wait for: streams
// through memory, and the kernels of convolutions and dense layers.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "graph/program.h"

namespace regatta::app {

// Bytes a second of one core that adds two arrays into a third, all larger than its caches: each
// byte read or written counts once.
struct StreamRates {
  double alone = 0;     // the other cores rest
  double together = 0;  // all cores do the same
};
StreamRates stream_rates(int cores, std::chrono::duration<double> at_least);

// Seconds that a core takes for one sample.
struct AloneTime {
  Instruction step;
  double seconds = 0;
};
// Forward and backward of each convolution and dense layer, one after the other on `samples`
// samples, on each of `cores` cores with memory of its own.
std::vector<AloneTime> products_alone(const Graph& graph, Layout layout, Precision precision,
                                      std::int64_t samples, int cores,
                                      std::chrono::duration<double> at_least);
bool is_product(const Node& node);

}  // namespace regatta::app
