// Shares of workers, each with one chunk of its own, by what steps with other shares took them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "tasks/task_list.h"

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

  double apart() const { return way > 0 ? waited / way : 0; }
  // How much less the least busy worker computes in a step than the busiest, from 0 to 1.
  double apart_in_all() const;
};

// What a step whose tasks took so many seconds says of its shares.
TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list,
                         std::span<const double> seconds);

// With which workers were least apart.
const TriedShares& best_shares(std::span<const TriedShares> tried);

// Which to try next: samples of the best so far are moved from the late to the early; if that was
// tried and was no better, half as many. Nothing if no better ones are to be expected.
std::optional<std::vector<std::int64_t>> next_shares(std::span<const TriedShares> tried,
                                                     std::int64_t granule = 1);

// For the profile, under the step's signature (trial_ranking.h), and back from it.
std::vector<Observation> observations_of(const std::string& step, const TriedShares& tried);
std::optional<TriedShares> recalled_shares(const std::string& step,
                                           const std::vector<std::int64_t>& chunks,
                                           const Profile& profile);

}  // namespace regatta
