#include "train/epoch_history.h"

#include "trace/thin.h"

namespace regatta {

void EpochHistory::add(const EpochRecord& record) {
  loading_seconds_ += record.loader_share * record.duration.count();
  waited_seconds_ += record.data_wait * record.duration.count();
  loading_ += record.loading;
  seconds_ += record.duration.count();
  epochs_.push_back(record);
  if (epochs_.size() < most_) return;
  std::vector<std::int64_t> numbers;
  std::vector<double> losses;
  for (const EpochRecord& each : epochs_) {
    numbers.push_back(each.epoch);
    losses.push_back(each.test_loss.value_or(each.train_loss));
  }
  const std::vector<bool> stays = trace::extremes_of_stretches(numbers, losses, most_ / 2);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < epochs_.size(); ++i)
    if (stays[i]) {
      if (kept != i) epochs_[kept] = std::move(epochs_[i]);
      ++kept;
    }
  epochs_.resize(kept);
}

}  // namespace regatta
