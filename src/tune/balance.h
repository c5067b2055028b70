// Shares of a batch among participants with one chunk each, CPU workers or cores and a GPU: samples
// move from the late to the early, by predicted costs and then by what real steps take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "tasks/meetings.h"
#include "train/job.h"

namespace regatta {

using ChunkSizes = std::vector<std::int64_t>;  // samples, by chunk of all groups of a plan

// Writes the chunks into the plan.
void give_chunks(Plan& plan, const ChunkSizes& chunks);

// Gives the plan the chunks with which participants are predicted to be least apart where they
// meet.
void balance_by_costs(TrainJob& job);

// What trials have found goes to this machine's profile, whose shares need not be tried again.
enum class Keep { in_profile, nowhere };

// Runs a few steps with each shares of a search, then with the best again, as long as the budget
// lasts, and gives the plan those with which participants are least apart; says so on standard
// error. What is too short for two trials leaves the plan's chunks. `step`: what a step is
// predicted to take. No executor may be alive.
void balance_by_trials(TrainJob& job, Seconds step, Seconds budget, Keep keep = Keep::in_profile);

// Samples of each chunk with which workers would arrive together, if a sample took each as long as
// it did when these chunks took so many seconds. All but the last are multiples of `granule`.
ChunkSizes balanced_chunks(const ChunkSizes& chunks, const std::vector<double>& seconds,
                           std::int64_t granule = 1);

// What a typical step took with such shares.
struct TriedShares {
  ChunkSizes chunks;
  std::vector<double> seconds;  // by chunk: of computing
  double way = 0;               // of the last to arrive, from meeting to meeting; see meetings.h
  double waited = 0;            // of the first for the last

  double apart() const { return way > 0 ? waited / way : 0; }
  // How much less the least busy worker computes in a step than the busiest, from 0 to 1.
  double apart_in_all() const;
};

// What a step whose tasks took so many seconds, or cost so much, says of its shares.
TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list,
                         std::span<const double> seconds);
TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs);

// The shares with which workers were least apart.
const TriedShares& best_shares(std::span<const TriedShares> tried);

// Tries out `chunks`, then shares with which samples of the best so far move from the late to the
// early; if those are no better, half as many move. Ends where no better ones are to be expected,
// or `try_out` has no time for them and returns nothing.
std::vector<TriedShares> search_shares(
    ChunkSizes chunks, std::int64_t granule,
    const std::function<std::optional<TriedShares>(const ChunkSizes&)>& try_out);

// For the profile, under the step's signature (trials.h), and back from it.
std::vector<Observation> observations_of(const std::string& step, const TriedShares& tried);
std::optional<TriedShares> stored_shares(const std::string& step, const ChunkSizes& chunks,
                                         const Profile& profile);

}  // namespace regatta
