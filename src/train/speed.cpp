#include "train/speed.h"

#include <algorithm>

#include "profile/robust.h"

namespace regatta {

void TypicalStep::add(double seconds) {
  // Twice as many as are promised at least: two neighbours are then joined into one.
  constexpr std::size_t most_stretches = 20;
  open_sum_ += seconds;
  if (++open_steps_ < length_) return;
  sums_.push_back(open_sum_);
  open_steps_ = 0;
  open_sum_ = 0;
  if (sums_.size() < most_stretches) return;
  for (std::size_t i = 0; i < most_stretches / 2; ++i) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  sums_.resize(most_stretches / 2);
  length_ *= 2;
}

double TypicalStep::seconds() const {
  return sums_.empty() ? 0 : median(sums_) / static_cast<double>(length_);
}

double typical_seconds(std::span<const double> steps) {
  TypicalStep typical;
  for (const double seconds : steps) typical.add(seconds);
  return typical.seconds();
}

void SpeedMeter::Sums::add(const Step& step) {
  seconds += step.seconds;
  images += step.images;
  typical.add(step.seconds);
}

void SpeedMeter::add(Seconds seconds, std::int64_t images) {
  const Step step{seconds.count(), static_cast<double>(images)};
  if (++steps_ <= 2 * warm_up_steps) first_.push_back(step);
  if (steps_ > warm_up_steps) rest_.add(step);
}

Speed SpeedMeter::speed() const {
  Sums counted = rest_;
  if (steps_ < 2 * warm_up_steps) {
    counted = {};
    for (std::size_t i = steps_ / 2; i < steps_; ++i) counted.add(first_[i]);
  }
  return {counted.seconds > 0 ? counted.images / counted.seconds : 0, counted.typical.seconds()};
}

}  // namespace regatta
