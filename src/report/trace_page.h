// A record and its analysis as a page's timeline, tiles and tables.
#pragma once

#include <optional>
#include <vector>

#include "report/page.h"
#include "trace/doctor.h"

namespace regatta {

inline constexpr std::size_t most_page_tasks = 500'000;  // with more, browsers choke

// `run` is run.json, for the names of segments and the platform's switches; an imported record may
// have none. Of more than
// `most_tasks` the page shows the first, and says so.
void add_trace(PageData& page, const Json& run, const trace::Record& record,
               const trace::Analysis& analysis, std::size_t most_tasks);

// What regatta doctor says of the run.
void add_advice(PageData& page, const std::vector<trace::Finding>& findings);

// A step's share of idle time over all workers, and what it used.
struct StepUse {
  std::int64_t step = 0;
  double idle_share = 0;
  std::optional<double> joules;
};
std::vector<StepUse> use_by_step(const trace::Record& record, const trace::Analysis& analysis);

}  // namespace regatta
