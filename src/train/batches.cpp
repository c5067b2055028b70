#include "train/batches.h"

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "data/load_clock.h"
#include "train/mixup.h"

namespace regatta {
namespace {

// What the random changes to a batch's samples are drawn from.
struct Draws {
  std::uint64_t seed = 0;
  std::uint64_t first = 0;  // samples of the run before the batch, if all batches were full
};

// One batch and how it is read. Copied into the function that workers call.
class Batch {
 public:
  // Without draws samples come as they are.
  Batch(Visits visits, std::int64_t first, std::optional<Draws> draws = {})
      : visits_(std::move(visits)), first_(first), draws_(draws) {}

  // Samples and labels at positions of the batch.
  void read(std::span<const std::int64_t> positions, std::byte* samples,
            std::int32_t* labels) const {
    const auto index_at = [&](std::int64_t position) {
      return (*visits_.order)[static_cast<std::size_t>(first_ + position)];
    };
    if (draws_) {
      const std::uint64_t key = random_key(draws_->seed, stream_of("augment"));
      std::vector<Visit> visits;
      for (const std::int64_t position : positions)
        visits.push_back({index_at(position),
                          keyed_bits(key, draws_->first + static_cast<std::uint64_t>(position))});
      visits_.data->read(std::span<const Visit>(visits), samples, labels);
    } else {
      std::vector<std::int64_t> indices;
      for (const std::int64_t position : positions) indices.push_back(index_at(position));
      visits_.data->read(std::span<const std::int64_t>(indices), samples, labels);
    }
  }

  // Samples as floats, whatever they are stored as.
  void read_floats(std::span<const std::int64_t> positions, float* samples,
                   std::int32_t* labels) const {
    if (visits_.data->info().dtype == Dtype::f32) {
      read(positions, reinterpret_cast<std::byte*>(samples), labels);
      return;
    }
    std::vector<std::uint8_t> stored(positions.size() * elements());
    read(positions, reinterpret_cast<std::byte*>(stored.data()), labels);
    const LoadClock transforms(&LoadingTimes::transforms);
    std::ranges::copy(stored, samples);
  }

  std::size_t elements() const {
    return static_cast<std::size_t>(visits_.data->info().sample.elements());
  }

 private:
  Visits visits_;
  std::int64_t first_;
  std::optional<Draws> draws_;
};

std::vector<std::int64_t> range(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < count; ++i) positions.push_back(first + i);
  return positions;
}

StepInput plain(const Batch& batch, std::int64_t count, bool as_floats) {
  StepInput input;
  input.samples = count;
  input.load = [batch, as_floats](std::int64_t first, std::int64_t wanted, std::byte* samples,
                                  Target* targets) {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(wanted));
    const std::vector<std::int64_t> positions = range(first, wanted);
    if (as_floats)
      batch.read_floats(positions, reinterpret_cast<float*>(samples), labels.data());
    else
      batch.read(positions, samples, labels.data());
    std::ranges::transform(labels, targets, Target::of);
  };
  return input;
}

// Stored values are blended before they are normalised: both are linear, so it is all the same.
StepInput mixed(const Batch& batch, std::int64_t count, const Mixing& mixing) {
  StepInput input;
  input.samples = count;
  input.load = [batch, mixing](std::int64_t first, std::int64_t wanted, std::byte* bytes,
                               Target* targets) {
    const auto many = static_cast<std::size_t>(wanted);
    auto* samples = reinterpret_cast<float*>(bytes);
    std::vector<std::int32_t> labels(many), partner_labels(many);
    std::vector<float> partners(many * batch.elements());
    batch.read_floats(range(first, wanted), samples, labels.data());
    batch.read_floats(std::span(mixing.partners).subspan(static_cast<std::size_t>(first), many),
                      partners.data(), partner_labels.data());
    const LoadClock transforms(&LoadingTimes::transforms);
    const float share = mixing.share, own = 1 - share;
    for (std::size_t i = 0; i < partners.size(); ++i)
      samples[i] = own * samples[i] + share * partners[i];
    for (std::size_t i = 0; i < many; ++i) targets[i] = {labels[i], partner_labels[i], share};
  };
  return input;
}

}  // namespace

StepInput test_batch(const Visits& visits, std::int64_t first, std::int64_t count, Dtype dtype) {
  return plain(Batch(visits, first), count, dtype == Dtype::f32);
}

StepInput train_batch(const Visits& visits, std::int64_t first, std::int64_t count,
                      const Recipe& recipe, std::uint64_t number) {
  const Batch batch(visits, first,
                    Draws{recipe.seed, number * static_cast<std::uint64_t>(recipe.batch)});
  if (recipe.mixup > 0)
    return mixed(batch, count, mixing_of(recipe.mixup, recipe.seed, number, count));
  return plain(batch, count, recipe.sample_dtype == Dtype::f32);
}

}  // namespace regatta
