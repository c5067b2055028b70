// A machine whose costs are known: what it measures can be laid beside the truth.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "profile/profile.h"

namespace regatta {

// Seconds of n samples: a fixed part, a part for each, and a slowdown beside busy neighbours.
struct TrueCost {
  double fixed = 20e-6, each = 10e-6;
  double slowdown = 0.5;  // with all workers busy, as a share
  int workers = 4;

  double at(double size, int busy) const {
    return (fixed + each * size) * (1 + slowdown * (busy - 1) / (workers - 1));
  }
};

// What goes wrong while it is measured.
struct Trouble {
  double noise = 0.02;     // standard deviation, as a share
  double spikes = 0;       // share of timings that are hit by one, up to fifty times as long
  double drift = 0;        // how much slower the last timing is than the first
  double neighbour = 0;    // share of all timings, in one stretch, that take twice as long
  bool sleeps = false;     // once, for an hour
  bool first_slow = true;  // kernels are made in the first run
};

inline std::vector<Observation> measured(const TrueCost& truth, const std::vector<double>& sizes,
                                         const std::vector<int>& busy, int rounds,
                                         const Trouble& trouble, std::uint64_t seed = 1,
                                         const std::string& signature = "work") {
  std::vector<Observation> all;
  const auto total = static_cast<double>(rounds) * static_cast<double>(sizes.size() * busy.size());
  for (int round = 0; round < rounds; ++round) {
    for (const double size : sizes) {
      for (const int with : busy) {
        const std::uint64_t index = all.size();
        const double way = static_cast<double>(index) / total;
        double seconds = truth.at(size, with);
        seconds *= 1 + trouble.noise * random_normal(seed, 1, index) + trouble.drift * way;
        if (random_uniform(seed, 2, index) < trouble.spikes)
          seconds *= 1 + 50 * random_uniform(seed, 3, index);
        if (way >= 0.3 && way < 0.3 + trouble.neighbour) seconds *= 2;
        if (round == 0 && trouble.first_slow) seconds *= 30;
        if (trouble.sleeps && index == static_cast<std::uint64_t>(total / 2)) seconds += 3600;
        all.push_back({signature, size, with, seconds});
      }
    }
  }
  return all;
}

}  // namespace regatta
