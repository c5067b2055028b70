// When a run saves, how much of it stays, and which checkpoint is the best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json.h"

namespace regatta {

// How good the weights of a checkpoint are: on test data if there is some, else by training loss.
struct Score {
  std::optional<double> test_accuracy;
  double loss = 0;  // of the test, if there was one

  // A tested one is better than one that was not; equal accuracy is decided by the loss.
  bool better_than(const Score& other) const;
};

// When a run saves and how much of it stays.
struct CheckpointPolicy {
  std::int64_t steps = 0;  // every so many, if positive
  Seconds time{};          // or so often, if positive
  int keep = 2;            // the newest that stay; the best does as well
  // Steps after which the run also saves; these checkpoints stay, as checkpoints/kept-N.
  std::vector<std::int64_t> kept = {};

  bool keeps(std::int64_t step) const;

  // `every` is "500" (steps), "30s", "10m" or "2h"; throws InputError.
  static CheckpointPolicy parse(const std::string& every, int keep,
                                std::vector<std::int64_t> kept = {});
  Json to_json() const;
  static CheckpointPolicy from_json(const Json& json);
};

}  // namespace regatta
