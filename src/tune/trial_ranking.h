// Plans that were tried out: what a few real steps of a candidate took counts for more than any
// prediction. The profile keeps it under a signature of its own.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.h"
#include "tune/choose.h"

namespace regatta {

// The profile's name for a whole step: what it computes and how the plan cuts it. Learning rates,
// seeds and schedules do not matter.
std::string step_signature(const Graph& graph, const Recipe& recipe, const Plan& plan);

// Fills in what earlier trials of the candidates took, as far as the profile knows it.
void apply_stored_trials(Choice& choice, const Graph& graph, const Recipe& recipe,
                         const Profile& profile);

// The candidates worth trying: the best of each kind, then the others by predicted time. Of those
// that differ in lanes, buckets or sizes of chunks alone only the best; none that is predicted to
// be slower than the best by more than predictions err.
std::vector<std::size_t> finalists(const Choice& choice, std::size_t most);

// Its trials took more than twice what was predicted: they were disturbed, or the costs miss
// something that may come and go.
bool is_doubtful(const Candidate& candidate);

// If at least two were tried, the fastest of them is put first, or a simpler one that is about as
// fast (prefer_simplest); those that were not tried go to the end. A doubtful one comes after all
// others that were tried, until another trial or new costs change that.
void rank_by_trials(Choice& choice);

// A line for each doubtful candidate, for people to read.
std::string doubts(const Choice& choice);

}  // namespace regatta
