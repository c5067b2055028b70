// What all ranks do together before and after the steps: few and small messages, waited for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace regatta {

// Whether a rank is known to be dead or out of reach: the first rank waits no longer for it, and
// takes its text for "". May become true at any time; empty: no rank ever is.
using Lost = std::function<bool(int rank)>;

// Every rank's text, by rank, on every rank. Called by all ranks in the same order.
std::vector<std::string> gather_texts(Transport& transport, const std::string& own,
                                      const Lost& lost = {});

// Every rank's text, by rank, on the first rank; empty on the others. Texts may be long: they are
// sent in pieces. Called by all ranks.
std::vector<std::string> texts_on_first(Transport& transport, const std::string& own,
                                        const Lost& lost = {});

// The first rank's text on every rank.
std::string text_of_first(Transport& transport, const std::string& own);

}  // namespace regatta
