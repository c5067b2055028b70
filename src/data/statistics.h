// What the pixels of a data set are like, and how a user says what to make of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/normalisation.h"
#include "data/dataset.h"

namespace regatta {

struct PixelStatistics {
  std::int64_t samples = 0;             // number of samples that were read
  std::vector<double> mean, deviation;  // by channel, of stored values times info().scale
};

// From at most `most` samples, spread evenly over the data.
PixelStatistics pixel_statistics(const Dataset& data, std::int64_t most);

// "0.5,0.5,0.5:0.2,0.2,0.2" (means, then deviations, of values times scale), or a name: none,
// imagenet, cifar10, cifar100, mnist. The scale stays. Throws InputError that quotes `text` when it
// does not give a mean and a deviation above 0 for each of `channels`.
Normalisation parse_normalisation(const std::string& text, std::int64_t channels, float scale);

}  // namespace regatta
