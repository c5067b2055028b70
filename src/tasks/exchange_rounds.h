// How the ranks of a run add up a bucket's gradient: which messages each of them sends and
// receives, round by round, for every NodeUpdate. Every rank ends with the same bits.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/rank_place.h"

namespace regatta {

struct Transfer {
  enum class Kind {
    send,
    receive,  // into place
    add,      // to what this rank has; those of one round in the order of ranks, its own among them
  };
  Kind kind = Kind::send;
  int peer = 0;
  int message = 0;  // the same number at both ends; different in each exchange between two ranks
  std::size_t first = 0, count = 0;  // elements
};

// What one rank does at the same time. The next round begins when all of it has arrived.
using ExchangeRound = std::vector<Transfer>;

// The rounds of rank place.rank for a bucket of so many elements. For NodeUpdate::chain: the rounds
// after the running sum of the ranks before was added to its own; for mpi: none.
std::vector<ExchangeRound> exchange_rounds(const RankPlace& place, std::size_t elements);

// For NodeUpdate::chain: where the running sum of the ranks before comes from; none for the first.
std::vector<ExchangeRound> running_sum_rounds(const RankPlace& place, std::size_t elements);

// Message numbers are below this.
int most_messages(const RankPlace& place);

}  // namespace regatta
