#include "plan/share_watch.h"

#include <algorithm>
#include <numeric>

#include "plan/rank_plan.h"

namespace regatta {
namespace {

// Longest time of a rank now, divided by the one with other shares. A smaller gain does not pay for
// making all ranks' executors anew, which takes about a second.
constexpr double worthwhile = 1.1;
// Steps. A disturbance that lasts for fewer steps is over before new shares pay.
constexpr int first_patience = 20;

}  // namespace

ShareWatch::ShareWatch(std::vector<std::int64_t> shares, std::int64_t granule,
                       std::vector<std::int64_t> chunks)
    : shares_(std::move(shares)),
      batch_(std::accumulate(shares_.begin(), shares_.end(), std::int64_t{0})),
      granule_(granule),
      chunks_(std::move(chunks)),
      patience_(first_patience) {}

bool ShareWatch::note(std::span<const double> seconds) {
  if (seconds.size() != shares_.size() ||
      std::ranges::any_of(seconds, [](double each) { return each <= 0; }))
    return false;
  std::vector<double> step(seconds.begin(), seconds.end());
  if (!worth_it(step)) {
    steps_.clear();
    return false;
  }
  steps_.push_back(std::move(step));
  if (std::ssize(steps_) < patience_) return false;
  // Each step may call for different shares: one set must be worth it for the medians too.
  if (worth_it(typical()) && better() != shares_) return true;
  steps_.pop_front();
  return false;
}

std::vector<double> ShareWatch::typical() const {
  std::vector<double> medians;
  for (std::size_t r = 0; r < shares_.size(); ++r) {
    std::vector<double> own;
    for (const std::vector<double>& step : steps_) own.push_back(step[r]);
    const auto middle = own.begin() + std::ssize(own) / 2;
    std::ranges::nth_element(own, middle);
    medians.push_back(*middle);
  }
  return medians;
}

std::vector<std::int64_t> ShareWatch::better() const { return best_for(typical()); }

void ShareWatch::use(std::vector<std::int64_t> shares) {
  before_.clear();
  const std::vector<double> took = typical();
  for (std::size_t r = 0; r < shares_.size(); ++r)
    before_.push_back({shares_[r], Seconds(took[r])});
  shares_ = std::move(shares);
  steps_.clear();
  patience_ *= 2;
}

std::vector<Participant> ShareWatch::participants(const std::vector<double>& seconds) const {
  std::vector<Participant> all;
  for (std::size_t r = 0; r < shares_.size(); ++r) {
    const TimedShare now{shares_[r], Seconds(seconds[r])};
    all.push_back(linear_through(before_.empty() ? now : before_[r], now));
  }
  return all;
}

std::vector<std::int64_t> ShareWatch::best_for(const std::vector<double>& seconds) const {
  const std::vector<std::int64_t> shares = balanced_shares(participants(seconds), batch_, granule_);
  return chunks_.empty() ? shares : whole_chunk_shares(chunks_, shares);
}

bool ShareWatch::worth_it(const std::vector<double>& seconds) const {
  const double now = *std::ranges::max_element(seconds);
  // No shares can be faster than if all ranks' samples per second were added up.
  double speed = 0;
  for (std::size_t r = 0; r < shares_.size(); ++r)
    speed += static_cast<double>(shares_[r]) / seconds[r];
  if (before_.empty() && now <= worthwhile * static_cast<double>(batch_) / speed) return false;
  const std::vector<Participant> all = participants(seconds);
  const std::vector<std::int64_t> other = best_for(seconds);
  double then = 0;
  for (std::size_t r = 0; r < other.size(); ++r)
    then = std::max(then, all[r].finish(other[r]).count());
  return now > worthwhile * then;
}

}  // namespace regatta
