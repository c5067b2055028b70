// What several processes of one run do together around the steps: errors reach the terminal once,
// and only the first rank prints and writes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/rank_flags.h"
#include "train/loop.h"
#include "train/ranks.h"

namespace regatta::app {

struct TrainFlags;

// The flags for one of several ranks: all ranks together share the batch out, and plans are cut by
// a rule of thumb.
TrainFlags flags_of_rank(TrainFlags flags);
RankRequest rank_request(const TrainFlags& flags);
// Whether shares follow the ranks' speeds while the run goes on. Throws InputError for flags that
// exclude each other.
bool replans(const TrainFlags& flags);

// Does something on this rank, or alone if `ranks` is null. If it fails on any rank with an
// InputError, all fail: see Ranks::agree.
void on_all_ranks(Ranks* ranks, const std::function<void()>& action);

// Trains, and if that fails here, tells the other ranks. If another rank failed this one ends
// quietly; if one fell silent, the whole run ends with code 75 after one line that says how to go
// on (`way_back` of the first rank).
void train_with_others(Ranks* ranks, std::optional<Executor>& executor,
                       const std::function<void()>& train,
                       const std::function<std::string()>& way_back);

}  // namespace regatta::app
