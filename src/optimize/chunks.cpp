#include "optimize/chunks.h"

#include <algorithm>

namespace regatta::optimize {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// The least sum of an amount over chunks that make up the batch, none of which takes longer than
// `longest`: by the samples that are left.
double least_sum(const std::vector<ChunkCost>& chunks, std::int64_t batch, double longest,
                 double ChunkCost::*amount) {
  std::vector<double> least(static_cast<std::size_t>(batch) + 1, infinite);
  least.front() = 0;
  for (std::size_t size = 1; size <= std::min(chunks.size(), least.size() - 1); ++size) {
    const ChunkCost& chunk = chunks[size - 1];
    if (chunk.chain_s > longest) continue;
    for (std::size_t samples = size; samples < least.size(); ++samples)
      least[samples] = std::min(least[samples], least[samples - size] + chunk.*amount);
  }
  return least.back();
}

double least_of_all(const LeastCosts& costs, std::int64_t batch, double longest,
                    double ChunkCost::*amount) {
  double least = infinite;
  for (const std::vector<ChunkCost>& chunks : costs.chunks)
    least = std::min(least, least_sum(chunks, batch, longest, amount));
  return least;
}

}  // namespace

BatchCost least_batch(const LeastCosts& costs, std::int64_t batch, double longest_step_s) {
  return {least_of_all(costs, batch, longest_step_s, &ChunkCost::seconds),
          least_of_all(costs, batch, longest_step_s, &ChunkCost::joules)};
}

double least_in_one_lane(const LeastCosts& costs, std::int64_t batch) {
  return least_of_all(costs, batch, infinite, &ChunkCost::chain_s);
}

}  // namespace regatta::optimize
