// Shares of a batch among participants with one chunk each, workers or a GPU, by what steps with
// other shares took them: samples move from the late to the early.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "tasks/meetings.h"

namespace regatta {

// Samples of each chunk with which workers would arrive together, if a sample took each as long as
// it did when these chunks took so many seconds. All but the last are multiples of `granule`.
std::vector<std::int64_t> balanced_chunks(const std::vector<std::int64_t>& chunks,
                                          const std::vector<double>& seconds,
                                          std::int64_t granule = 1);

// What a typical step took with such shares.
struct TriedShares {
  std::vector<std::int64_t> chunks;
  std::vector<double> seconds;  // by chunk: of computing
  double way = 0;               // of the last to arrive, from meeting to meeting; see meetings.h
  double waited = 0;            // of the first for the last

  void add(const std::vector<Meeting>& meetings);  // to the way, and to what was waited
  double apart() const { return way > 0 ? waited / way : 0; }
  // How much less the least busy worker computes in a step than the busiest, from 0 to 1.
  double apart_in_all() const;
};

// What a step whose tasks took so many seconds says of its shares.
TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list,
                         std::span<const double> seconds);

// The shares with which workers were least apart.
const TriedShares& best_shares(std::span<const TriedShares> tried);

// The shares to try next: samples of the best so far move from the late to the early; if that was
// tried and was no better, half as many. Nothing if no better ones are to be expected.
std::optional<std::vector<std::int64_t>> next_shares(std::span<const TriedShares> tried,
                                                     std::int64_t granule = 1);

// Looks at `chunks` and at whatever next_shares() says of all shares looked at so far, until it
// says nothing or `look` has no time for them and returns nothing.
std::vector<TriedShares> search_shares(
    const std::vector<std::int64_t>& chunks, std::int64_t granule,
    const std::function<std::optional<TriedShares>(const std::vector<std::int64_t>&)>& look);

// For the profile, under the step's signature (trial_ranking.h), and back from it.
std::vector<Observation> observations_of(const std::string& step, const TriedShares& tried);
std::optional<TriedShares> stored_shares(const std::string& step,
                                         const std::vector<std::int64_t>& chunks,
                                         const Profile& profile);

}  // namespace regatta
