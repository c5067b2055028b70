// What all ranks do together before and after the steps: few and small messages, waited for.
#pragma once

#include <string>
#include <vector>

#include "transport/transport.h"

namespace regatta {

// Every rank's text, by rank, on every rank. Called by all ranks in the same order.
std::vector<std::string> gather_texts(Transport& transport, const std::string& own);

// Every rank's text, by rank, on the first rank; empty on the others. Texts may be long: they are
// sent in pieces. Called by all ranks.
std::vector<std::string> texts_on_first(Transport& transport, const std::string& own);

// The first rank's text on every rank.
std::string text_of_first(Transport& transport, const std::string& own);

// Waits until it is done, looking every 100 us.
void wait_for(Message& message);

}  // namespace regatta
