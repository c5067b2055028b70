// When the ranks of a recorded run arrived at each exchange, and how long its messages took.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/analysis.h"

namespace regatta {

// One exchange of each step; times are medians over the steps, in seconds.
struct RankMeeting {
  std::string name;                        // "exchange s0 b2": the label of its tasks
  bool gradients = false;                  // true: of gradients; false: of a batch norm's sums
  std::map<std::string, double> arrivals;  // by node, since the first forward task of the step
  double messages = 0;  // from the arrival of the last node until all have what they need

  double last_arrival() const;
};

struct RankMeetings {
  std::vector<RankMeeting> all;  // of gradients first, then by the arrival of the last node
  // Seconds of a step in which messages of a bucket were on their way after all nodes had arrived.
  double exchange_s = 0;

  const RankMeeting* find(const std::string& name) const;
};

// None if the record has a single node, or if a running sum goes from node to node (--update
// chain), where no rank waits for all others.
std::optional<RankMeetings> rank_meetings(const trace::Record& record, const trace::Window& window);

}  // namespace regatta
