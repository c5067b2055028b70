// tickets/: lottery tickets: which weights of a trained network stay (prune), the network without
// its dead channels (compact), and tickets for PyTorch (export).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "train/masking.h"

namespace regatta::tickets {

enum class Scope {
  global,   // the best weights of all layers together
  layer,    // the same part of every layer
  channel,  // whole output channels, the same part of every layer; the last layer stays whole
};
enum class Criterion {
  magnitude,           // |w|
  magnitude_increase,  // |w| - |w at the start|
  random,
};

std::string_view scope_name(Scope scope);
Scope scope_named(std::string_view name);  // throws InputError with the nearest name
std::string_view criterion_name(Criterion criterion);
Criterion criterion_named(std::string_view name);  // likewise

struct PruneOptions {
  double keep =
      1;  // the part of all maskable weights (or channels) that stays, pruned ones counted
  Scope scope = Scope::global;
  Criterion by = Criterion::magnitude;
  std::uint64_t seed = 1;            // of Criterion::random
  const Mask* previous = nullptr;    // what it masks stays masked
  const Weights* initial = nullptr;  // for Criterion::magnitude_increase
};

// The weights that stay are those of the highest score, earlier weights first among equals; their
// number is keep times the weights, rounded to the nearest. Throws InputError if `keep` is not in
// (0, 1], is more than `previous` has left, or leaves no weight at all.
Mask prune(const Graph& graph, const Weights& weights, const PruneOptions& options);

// As `mask`, but random: every tensor keeps as many weights as it has in `mask`, drawn from `seed`.
// A control for searches.
Mask shuffled(const Mask& mask, std::uint64_t seed);

}  // namespace regatta::tickets
