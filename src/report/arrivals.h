// When the ranks of a run came to the points where all of them meet, by its record.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/analysis.h"

namespace regatta {

// Medians over the steps, in seconds.
struct RankMeeting {
  std::string name;                        // "exchange s0 b2": the label of its tasks
  bool gradients = false;                  // else chunks of a batch norm meet
  std::map<std::string, double> arrivals;  // by node, since the first forward task of the step
  double messages = 0;  // from the arrival of the last node until all have what they need

  double last_arrival() const;
};

struct RankMeetings {
  std::vector<RankMeeting> all;  // of gradients first, then by the arrival of the last node
  // For so long in a step the messages of any bucket were on their way that all nodes had come to.
  double exchange_s = 0;

  const RankMeeting* find(const std::string& name) const;
};

// None: the record is not of several nodes, or a running sum goes along the nodes, where nobody
// waits for all.
std::optional<RankMeetings> rank_meetings(const trace::Record& record, const trace::Window& window);

}  // namespace regatta
