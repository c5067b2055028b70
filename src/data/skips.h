// The samples a data set could not read, noted by whichever worker met them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "data/dataset.h"

namespace regatta {

class Skips {
 public:
  // Keeps the reasons of the first `named` by index.
  explicit Skips(std::size_t named = 5) : named_(named) {}

  void note(std::int64_t index, const std::string& what) {
    const std::scoped_lock lock(mutex_);
    all_.insert(index);
    first_.emplace(index, what);
    if (first_.size() > named_) first_.erase(std::prev(first_.end()));
    if (of_thread_ && of_thread_ != this) of_thread_->note(index, what);
  }

  SkippedSamples report() const {
    const std::scoped_lock lock(mutex_);
    SkippedSamples result;
    result.count = static_cast<std::int64_t>(all_.size());
    result.indices.assign(all_.begin(), all_.end());
    for (const auto& [index, what] : first_) result.first.push_back(what);
    return result;
  }

 private:
  friend class SkipsOfThread;

  inline static thread_local Skips* of_thread_ = nullptr;  // notes what this thread skips

  std::size_t named_;
  mutable std::mutex mutex_;
  std::set<std::int64_t> all_;
  std::map<std::int64_t, std::string> first_;  // the skipped samples with the lowest indices
};

// While it lives, `skips` also notes the samples that this thread skips.
class SkipsOfThread {
 public:
  explicit SkipsOfThread(Skips& skips) { Skips::of_thread_ = &skips; }
  ~SkipsOfThread() { Skips::of_thread_ = nullptr; }
  SkipsOfThread(const SkipsOfThread&) = delete;
  SkipsOfThread& operator=(const SkipsOfThread&) = delete;
};

Json to_json(const SkippedSamples& skipped);

// For people: how many of `what` ("sample", "test sample") and the first by name, a line each; no
// line if none was skipped. `when` ends the first one, such as " so far".
std::vector<std::string> lines_of(const SkippedSamples& skipped, const std::string& what,
                                  const std::string& when = "");

// One sample cannot be read, and nothing may take its place.
class UnreadableSample : public InputError {
 public:
  UnreadableSample(const std::string& text, std::string cause)
      : InputError(text), cause_(std::move(cause)) {}
  const std::string& cause() const { return cause_; }  // without the sample's name

 private:
  std::string cause_;
};

// So many in a row are no accident.
inline constexpr int most_skips_in_a_row = 100;

// Calls `read(i)` with i = index, then the next ones around the end until one does not throw
// InputError; so what takes a sample's place depends on the data alone. With `strict` the first
// failure is final, an UnreadableSample. `require_present` throws if not the sample but all of the
// data has gone.
template <class Read, class Describe, class Present>
void read_or_next(std::int64_t index, std::int64_t count, bool strict, Skips& skips, Read read,
                  Describe describe, Present require_present) {
  for (int skipped = 0;; ++skipped, index = (index + 1) % count) {
    try {
      read(index);
      return;
    } catch (const InputError& error) {
      require_present();
      const std::string what = "'" + describe(index) + "': " + error.what();
      if (strict) throw UnreadableSample(what + " (--strict)", error.what());
      if (skipped + 1 >= most_skips_in_a_row || skipped + 1 >= count)
        throw InputError(std::to_string(skipped + 1) +
                         " samples in a row cannot be read, the last is " + what);
      skips.note(index, what);
    }
  }
}

}  // namespace regatta
