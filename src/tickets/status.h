// Which worker does what in a search, what is done, and when all will be.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tickets/folder.h"
#include "tickets/lease.h"

namespace regatta::tickets {

struct WorkerStatus {
  std::string name;
  Heartbeat heartbeat;
  bool alive = false;  // it was seen to count
  int finished = 0;    // jobs it has done
};

struct SearchStatus {
  std::size_t jobs = 0, done = 0, under_way = 0, hopeless = 0;
  std::vector<WorkerStatus> workers;     // alive, or with jobs under way
  std::vector<std::string> failures;     // "ID: why"
  std::optional<Seconds> left;           // until all is done, by the workers that are alive; none
                                         // if none of them has measured its speed
  std::map<std::string, double> speeds;  // images/s by machine, medians of what jobs measured

  std::size_t open() const { return jobs - done - under_way - hopeless; }
};

// `heartbeats` by worker's name, and which of them were seen to count.
SearchStatus status_of(const SearchFolder& folder,
                       const std::map<std::string, Heartbeat>& heartbeats,
                       const std::vector<std::string>& alive);

std::string status_text(const SearchStatus& status);
Json to_json(const SearchStatus& status);

// Names of workers that have a heartbeat file.
std::vector<std::string> workers_of(FileLayer& files, const std::filesystem::path& search);

// By machine, the median of what its finished jobs measured.
std::map<std::string, double> measured_speeds(const SearchFolder& folder);

// The work that is left: jobs not done and not hopeless; who waits for whom by index.
std::vector<JobWork> work_left(const SearchFolder& folder);

}  // namespace regatta::tickets
