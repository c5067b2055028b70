// How long a search takes, alone and on many workers, before anything is trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "tickets/schedule.h"

namespace regatta::tickets {

// Tickets alone: M masks (independent of each other) or L levels (each waits for the one before),
// times reset points, times seeds.
struct SearchSize {
  int masks = 0, levels = 0;  // one of them is 0
  int resets = 1, seeds = 1;
  double epochs = 1;
  Seconds epoch_time{0};  // on a worker of speed 1
};
std::vector<JobWork> jobs_of(const SearchSize& size);

struct SearchEstimate {
  std::size_t jobs = 0;
  Seconds alone{0};           // on one worker of speed 1
  Seconds together{0};        // whole jobs on all workers
  Seconds ideal{0};           // work cut at will
  Seconds longest_chain{0};   // no number of workers of the fastest kind is faster
  std::vector<Seconds> busy;  // by worker
  std::vector<int> done;      // jobs by worker

  double speed_up() const { return alone / together; }
  double efficiency() const { return ideal / together; }  // against the heterogeneous ideal
};
SearchEstimate estimate(const std::vector<JobWork>& jobs, const std::vector<WorkerSpeed>& workers);

// "20", or speeds beside each other with counts: "19x1,0.5". `flag` is named in errors.
std::vector<WorkerSpeed> parse_speeds(const std::string& flag, const std::string& text);

// "90s", "4.5m", "2h"; throws InputError.
Seconds parse_time(const std::string& flag, const std::string& text);

// "131 h 15 min", "4 min 30 s", "12.3 s"; to the nearest minute from an hour on, minutes dropped if
// they are 0.
std::string time_text(Seconds time);

}  // namespace regatta::tickets
