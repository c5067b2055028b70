// What stands in the way of a faster run, in plain words, with what would help.
#pragma once

#include <string>
#include <vector>

#include "trace/analysis.h"

namespace regatta::trace {

struct Finding {
  std::string what;   // a sentence
  std::string fix;    // a sentence
  std::string flag;   // of regatta train, to try it: "--chunks 8"
  double gain_s = 0;  // wall time of the window that the fix could save at best
  double gain = 0;    // the same as a share of the window
};

// What can be told of a run's plan from its metadata; 0 and "" where it cannot.
struct PlanFacts {
  std::int64_t workers = 0, chunks = 0, segments = 0, batch = 0;
  std::string scheduler, reduction;
};
PlanFacts plan_facts(const Record& record);

// The most helpful first, at most `most`. There is always something to say of a run with tasks.
std::vector<Finding> diagnose(const Record& record, const Analysis& found, std::size_t most = 3);

}  // namespace regatta::trace
