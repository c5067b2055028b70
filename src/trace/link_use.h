// What the links of a record carried in a part of it.
#pragma once

#include "trace/analysis.h"

namespace regatta::trace {

struct LinkUse {
  Time busy = 0;           // it carried something
  std::int64_t bytes = 0;  // of a transfer across a border of the window, its part inside
};

// By link of the record. All zero where only totals were recorded.
std::vector<LinkUse> use_of_links(const Record& record, const Window& window);

}  // namespace regatta::trace
